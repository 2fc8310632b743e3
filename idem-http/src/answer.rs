//! What a handler's response is to the coordinator.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response, response};
use http_body::Body as HttpBody;
use idem_core::{BoxError, Classify, Effect, NotKept};

use crate::body::{Body, Rest, Whole};
use crate::codec;
use crate::collect::{Collected, collect};
use crate::config::Config;
use crate::disposition::{Disposition, KeepFor};
use crate::headers::IDEMPOTENT_REPLAYED;

/// A response that says that the effect happened.
pub(crate) enum Answer<B: HttpBody> {
    /// It is stored and replayed.
    Kept(Arc<Kept>),
    /// It flows to its caller, and is not stored.
    Flowing(Box<Flowing<B>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) parts: response::Parts,
    pub(crate) body: Whole,
}

pub(crate) struct Flowing<B: HttpBody> {
    parts: response::Parts,
    body: Body<B>,
    pub(crate) why: NotKept,
}

/// A response, or an error, that leaves no answer for a retry.
pub(crate) enum Unanswered<B, E> {
    /// The handler responded.
    Response(Response<B>, Effect),
    /// The service failed.
    Failed(E),
}

impl Kept {
    pub(crate) fn keep_for(&self) -> Option<Duration> {
        keep_for(&self.parts)
    }
}

impl<B: HttpBody> Flowing<B> {
    pub(crate) fn keep_for(&self) -> Option<Duration> {
        keep_for(&self.parts)
    }
}

fn keep_for(parts: &response::Parts) -> Option<Duration> {
    parts.extensions.get().map(|KeepFor(duration)| *duration)
}

impl<B: HttpBody> Answer<B> {
    /// Reads the handler's response as far as it is to be kept.
    pub(crate) async fn of<E>(
        response: Response<B>,
        config: &Config,
    ) -> Result<Self, Unanswered<B, E>> {
        let asked = response.extensions().get::<Disposition>().copied();
        match asked.unwrap_or_else(|| (config.statuses)(response.status())) {
            Disposition::Release => Err(Unanswered::Response(response, Effect::None)),
            Disposition::Abandon => Err(Unanswered::Response(response, Effect::Unknown)),
            Disposition::Done => Ok(Self::flowing(response, NotKept::Chosen)),
            // Nobody waits for the end of a stream that has none.
            Disposition::Keep if is_event_stream(response.headers()) => {
                Ok(Self::flowing(response, NotKept::Chosen))
            }
            Disposition::Keep => Ok(Self::read(response, config).await),
        }
    }

    fn flowing(response: Response<B>, why: NotKept) -> Self {
        let (parts, body) = response.into_parts();
        Self::Flowing(Box::new(Flowing { parts, body: Body::passed(body), why }))
    }

    async fn read(response: Response<B>, config: &Config) -> Self {
        let (parts, body) = response.into_parts();
        let (before, rest, why) =
            match collect(body, config.max_response, Some(config.patience)).await {
                Collected::Whole(body) => return Self::Kept(Arc::new(Kept { parts, body })),
                Collected::TooLarge { before, rest, bytes } => {
                    (before, rest, NotKept::TooLarge { bytes })
                }
                Collected::Unfinished { before, rest } => (before, rest, NotKept::Chosen),
                Collected::Failed { before, error } => {
                    (before, Rest::Error(Some(error)), NotKept::NotReplayable)
                }
            };
        Self::Flowing(Box::new(Flowing { parts, body: Body::resumed(before, rest), why }))
    }

    /// The response to a caller.
    pub(crate) fn into_response(self, replayed: bool) -> Response<Body<B>> {
        let (mut parts, body) = match self {
            Self::Kept(kept) => {
                let (parts, body) = codec::parts(kept);
                (parts, Body::whole(body))
            }
            Self::Flowing(flowing) => (flowing.parts, flowing.body),
        };
        mark(&mut parts.headers, replayed);
        Response::from_parts(parts, body)
    }
}

/// Says whether a response was replayed: only this layer does.
pub(crate) fn mark(headers: &mut HeaderMap, replayed: bool) {
    if replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    } else {
        headers.remove(IDEMPOTENT_REPLAYED);
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let essence = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next();
        essence.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(b"text/event-stream"))
    };
    headers.get(CONTENT_TYPE).is_some_and(essence)
}

/// What a response without an answer says of the effect.
pub(crate) struct ByDisposition;

impl<B: 'static, E: 'static> Classify<Unanswered<B, E>> for ByDisposition {
    fn effect(&self, unanswered: &Unanswered<B, E>) -> Effect {
        match unanswered {
            Unanswered::Response(_, effect) => *effect,
            // A time-out within, say: it may have happened.
            Unanswered::Failed(_) => Effect::Unknown,
        }
    }

    fn encode(&self, _: &Unanswered<B, E>) -> Result<Bytes, BoxError> {
        Err(NOT_KEPT.into())
    }

    fn decode(&self, _: &Bytes) -> Result<Unanswered<B, E>, BoxError> {
        Err(NOT_KEPT.into())
    }
}

const NOT_KEPT: &str = "responses are kept as values, not as errors";
