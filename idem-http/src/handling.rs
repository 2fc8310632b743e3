//! From a request with a key to its response.

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response};
use http_body::Body as HttpBody;
use idem_core::{BoxError, RunError, RunningAttempt};
use tower_service::Service;

use crate::answer::{Answer, ByDisposition, Unanswered, mark};
use crate::body::{Body, Whole};
use crate::codec::HttpCodec;
use crate::collect::{Collected, collect};
use crate::config::Config;
use crate::principal::Principal;
use crate::problem::Problem;
use crate::render::{Form, render};
use crate::scope;
use crate::service::read;

/// One request with a key.
pub(crate) struct Handling<S> {
    pub(crate) inner: S,
    pub(crate) config: Arc<Config>,
    pub(crate) key: String,
}

/// How a call ended that has no answer for a retry.
enum Ended<R, E> {
    Refused(Problem),
    Unanswered(Unanswered<R, E>),
}

impl<S> Handling<S> {
    pub(crate) async fn respond<B, R>(
        self,
        request: Request<B>,
    ) -> Result<Response<Body<R>>, S::Error>
    where
        S: Service<Request<Body<B>>, Response = Response<R>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: HttpBody<Data: Send, Error: Send> + Send + 'static,
        R: HttpBody<Data: Send, Error: Send> + Send + 'static,
    {
        let form = Form::wanted(request.headers());
        let config = Arc::clone(&self.config);
        match self.answer(request).await {
            Ok((answer, replayed)) => Ok(answer.into_response(replayed)),
            Err(Ended::Refused(problem)) => Ok(render(&problem, form, &config).map(read)),
            Err(Ended::Unanswered(Unanswered::Failed(error))) => Err(error),
            Err(Ended::Unanswered(Unanswered::Response(mut response, _))) => {
                mark(response.headers_mut(), false);
                Ok(response.map(Body::passed))
            }
        }
    }

    /// Everything that can be refused is refused before the key is reserved.
    async fn answer<B, R>(
        self,
        request: Request<B>,
    ) -> Result<(Answer<R>, bool), Ended<R, S::Error>>
    where
        S: Service<Request<Body<B>>, Response = Response<R>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: HttpBody<Data: Send, Error: Send> + Send + 'static,
        R: HttpBody<Data: Send, Error: Send> + Send + 'static,
    {
        let Self { mut inner, config, key } = self;
        let (parts, body) = request.into_parts();
        let principal = principal(&parts, &config)?;
        let body = whole(body, config.max_body).await?;
        let fingerprint = config.fingerprint.of(&parts, &body.data).map_err(unfingerprinted)?;
        let tenant = scope::tenant(&parts, &principal).map_err(unfingerprinted)?;
        let call = config
            .operation
            .clone()
            .tenant(&tenant)
            .key(&key)
            .fingerprint(fingerprint)
            .codec(HttpCodec(Arc::clone(&config)))
            .errors(ByDisposition);
        let for_action = Arc::clone(&config);
        let action = move |attempt: RunningAttempt| async move {
            let mut request = Request::from_parts(parts, Body::whole(body));
            request.extensions_mut().insert(attempt);
            let response = inner.call(request).await.map_err(Unanswered::Failed)?;
            Answer::of(response, &for_action).await
        };
        match call.run(action).await {
            Ok(outcome) => Ok((outcome.value, outcome.replayed)),
            Err(RunError::Action { error, .. }) => Err(Ended::Unanswered(error)),
            Err(RunError::Call(error)) => Err(Problem::of(&error, &config.fingerprint).into()),
        }
    }
}

fn principal(parts: &Parts, config: &Config) -> Result<Principal, Problem> {
    let known = |principal: &Principal| !matches!(principal, Principal::Id(id) if id.is_empty());
    config.principals.principal(parts).filter(known).ok_or(Problem::NoPrincipal)
}

/// The request's body: it defines the request, and it has to outlive its client.
async fn whole<B: HttpBody>(body: B, limit: usize) -> Result<Whole, Problem> {
    match collect(body, limit, None).await {
        Collected::Whole(whole) => Ok(whole),
        Collected::TooLarge { .. } => Err(Problem::BodyTooLarge { limit }),
        Collected::Failed { .. } | Collected::Unfinished { .. } => Err(Problem::BodyUnreadable),
    }
}

fn unfingerprinted(why: impl Into<BoxError>) -> Problem {
    Problem::NoFingerprint(why.into().to_string())
}

impl<R, E> From<Problem> for Ended<R, E> {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}
