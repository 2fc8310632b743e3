//! Unary calls of a gRPC service, tonic's, over a wire: the recipe of the cookbook.

use axum::Router;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response, StatusCode};
use idem_http::{Anonymous, Disposition, IDEMPOTENT_REPLAYED, IdempotencyLayer, Problem};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tower::{ServiceBuilder, service_fn};

use crate::stores::Shared;
use crate::support::{Calls, operation};
use crate::wire::server::{dial2, serve};

const CHARGE: &str = "/payments.Charges/Charge";

/// What the generated code of a service does: it charges `ch_1`, `ch_2` and so on.
async fn charge(
    calls: Calls,
    request: Request<idem_http::Body<axum::body::Body>>,
) -> Response<tonic::body::Body> {
    let charge = service_fn(|request: tonic::Request<String>| {
        let number = calls.one_more();
        async move {
            match request.get_ref().as_str() {
                "in an outage" if number == 1 => Err(Status::unavailable("come again")),
                "without money" => Err(Status::failed_precondition("declined")),
                order => Ok(tonic::Response::new(format!("ch_{number}, {order}"))),
            }
        }
    });
    tonic::server::Grpc::new(ProstCodec::<String, String>::default()).unary(charge, request).await
}

/// Every status of gRPC is a 200 of HTTP: by its code it is told what passes.
fn disposed(mut response: Response<tonic::body::Body>) -> Response<tonic::body::Body> {
    let code = response.extensions().get::<Status>().map(Status::code);
    let disposition = match code {
        Some(Code::Unavailable | Code::ResourceExhausted | Code::Unauthenticated) => {
            Disposition::Release
        }
        Some(Code::Unknown | Code::Internal | Code::DeadlineExceeded) => Disposition::Abandon,
        _ => Disposition::Keep,
    };
    response.extensions_mut().get_or_insert(disposition);
    response
}

/// Refusals of the layer as a client of gRPC knows them.
fn refused(problem: &Problem) -> Response<Bytes> {
    let code = match problem.status() {
        StatusCode::CONFLICT => Code::Aborted,
        StatusCode::UNPROCESSABLE_ENTITY => Code::FailedPrecondition,
        status if status.is_server_error() => Code::Unavailable,
        _ => Code::InvalidArgument,
    };
    Status::new(code, problem.to_string()).into_http()
}

fn charges(calls: &Calls) -> Router {
    let layer = IdempotencyLayer::builder(operation(Shared::default()), Anonymous)
        .render(refused)
        .build()
        .unwrap();
    let calls = calls.clone();
    let service = ServiceBuilder::new().layer(layer).map_response(disposed).service(service_fn(
        move |request| {
            let answer = charge(calls.clone(), request);
            async { Ok::<_, std::convert::Infallible>(answer.await) }
        },
    ));
    Router::new().route_service(CHARGE, service)
}

/// Over a connection of its own.
struct Client(hyper::client::conn::http2::SendRequest<tonic::body::Body>);

impl Client {
    async fn send(
        &self,
        key: &'static str,
        order: &str,
    ) -> Result<tonic::Response<String>, Status> {
        let connection = self.0.clone();
        let wire = service_fn(move |request| connection.clone().send_request(request));
        let mut client = tonic::client::Grpc::with_origin(wire, "http://api".parse().unwrap());
        client.ready().await.unwrap();
        let mut request = tonic::Request::new(order.to_owned());
        if !key.is_empty() {
            request.metadata_mut().insert("idempotency-key", key.parse().unwrap());
        }
        client.unary(request, CHARGE.parse().unwrap(), ProstCodec::default()).await
    }
}

async fn setup() -> (Calls, Client) {
    let calls = Calls::default();
    let client = Client(dial2(serve(charges(&calls)).await).await);
    (calls, client)
}

fn replayed(answer: &tonic::Response<String>) -> bool {
    answer.metadata().contains_key(IDEMPOTENT_REPLAYED.as_str())
}

#[tokio::test]
async fn a_call_replays_with_its_trailers() {
    let (calls, client) = setup().await;
    let first = client.send("k", "an order").await.unwrap();
    let again = client.send("k", "an order").await.unwrap();
    assert_eq!((first.get_ref().as_str(), replayed(&first)), ("ch_1, an order", false));
    assert_eq!((again.get_ref().as_str(), replayed(&again)), ("ch_1, an order", true));
    assert_eq!(calls.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_calls_at_once_one_charges() {
    let (calls, client) = setup().await;
    for answer in join_all((0..50).map(|_| client.send("k", "an order"))).await {
        assert_eq!(answer.unwrap().get_ref(), "ch_1, an order");
    }
    assert_eq!(calls.count(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_service_replays_and_an_outage_runs_again() {
    let (calls, client) = setup().await;
    let outage = client.send("k-1", "in an outage").await.unwrap_err();
    assert_eq!(outage.code(), Code::Unavailable);
    let again = client.send("k-1", "in an outage").await.unwrap();
    assert_eq!((again.get_ref().as_str(), replayed(&again)), ("ch_2, in an outage", false));
    for _ in 0..2 {
        let declined = client.send("k-2", "without money").await.unwrap_err();
        assert_eq!((declined.code(), declined.message()), (Code::FailedPrecondition, "declined"));
    }
    assert_eq!(calls.count(), 3);
}

#[tokio::test]
async fn a_refusal_of_the_layer_has_a_code_of_grpc() {
    let (calls, client) = setup().await;
    client.send("k", "an order").await.unwrap();
    let mismatch = client.send("k", "another").await.unwrap_err();
    assert_eq!(mismatch.code(), Code::FailedPrecondition, "{mismatch:?}");
    let missing = client.send("", "an order").await.unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument, "{missing:?}");
    assert_eq!(calls.count(), 1);
}
