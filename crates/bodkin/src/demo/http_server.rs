//! A small HTTP/1.1 server on loopback for the participants: whole requests in, whole answers out.

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Connections served at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// Longest request body, in bytes; a longer one is answered 413.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest time for a request's head, and as long again for its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, for instance without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener on loopback whose port the kernel chose.
pub async fn listen() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

/// Serves for ever. `answer` gives status and JSON body for method, path and body.
pub async fn serve<A>(listener: TcpListener, answer: A)
where
    A: Fn(&Method, &str, Bytes) -> (StatusCode, String) + Send + Sync + 'static,
{
    let answer = Arc::new(answer);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_connection(stream, answer.clone(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection<A>(stream: TcpStream, answer: Arc<A>, _place: OwnedSemaphorePermit)
where
    A: Fn(&Method, &str, Bytes) -> (StatusCode, String) + Send + Sync + 'static,
{
    let service = service_fn(|request| {
        let answer = answer.clone();
        async move { Ok::<_, Infallible>(respond(request, answer.as_ref()).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    // A peer that breaks its connection off loses its answer, nothing else.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond<A>(request: Request<Incoming>, answer: &A) -> Response<Full<Bytes>>
where
    A: Fn(&Method, &str, Bytes) -> (StatusCode, String),
{
    let (head, body) = request.into_parts();
    let (status, body) = match timeout(REQUEST_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => answer(&head.method, head.uri.path(), body.to_bytes()),
        Ok(Err(_)) => (StatusCode::PAYLOAD_TOO_LARGE, String::new()),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
