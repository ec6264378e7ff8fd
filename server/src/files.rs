//! Static files: a fixed table from paths to answers of GET and HEAD.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

use crate::call::Pairs;

/// One file: the headers it is answered with, and its content.
#[derive(Clone, Debug)]
pub struct StaticFile {
    headers: HeaderMap,
    content: Bytes,
}

impl StaticFile {
    /// Fails where HTTP cannot carry a header, with its name.
    pub fn new(headers: Pairs, content: Vec<u8>) -> Result<Self, String> {
        let mut map = HeaderMap::with_capacity(headers.len() + 1);
        for (name, value) in headers {
            match (
                HeaderName::try_from(name.as_str()),
                HeaderValue::try_from(value),
            ) {
                (Ok(name), Ok(value)) => drop(map.insert(name, value)),
                _ => return Err(format!("HTTP cannot carry the header {name}")),
            }
        }
        map.insert(header::CONTENT_LENGTH, HeaderValue::from(content.len()));
        let content = Bytes::from(content);
        Ok(StaticFile {
            headers: map,
            content,
        })
    }
}

/// The files of a transport, by path. Empty: there are none.
#[derive(Clone, Debug, Default)]
pub struct StaticFiles(pub HashMap<String, StaticFile>);

impl StaticFiles {
    /// The answer to a request for a file; `None` for any other request.
    pub fn answer<B>(&self, request: &Request<B>) -> Option<Response<Bytes>> {
        let is_head = request.method() == Method::HEAD;
        if !is_head && request.method() != Method::GET {
            return None;
        }
        let file = self.0.get(request.uri().path())?;
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = file.headers.clone();
        if is_known(request.headers(), &file.headers) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(header::CONTENT_LENGTH);
        } else if !is_head {
            *response.body_mut() = file.content.clone();
        }
        Some(response)
    }
}

/// Whether the browser has the file already: RFC 9110, section 13.1.2.
fn is_known(requested: &HeaderMap, headers: &HeaderMap) -> bool {
    let Some(etag) = headers.get(header::ETAG) else {
        return false;
    };
    let lists = requested.get_all(header::IF_NONE_MATCH).iter();
    lists
        .flat_map(|list| list.as_bytes().split(|byte| *byte == b','))
        .map(|one| one.trim_ascii())
        .any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == etag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> StaticFiles {
        let headers = vec![("etag".to_owned(), "\"1\"".to_owned())];
        let file = StaticFile::new(headers, b"hello".to_vec()).unwrap();
        StaticFiles(HashMap::from([("/".to_owned(), file)]))
    }

    fn answer(method: &str, path: &str, known: &str) -> Option<(StatusCode, usize)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("if-none-match", known)
            .body(())
            .unwrap();
        let response = files().answer(&request)?;
        Some((response.status(), response.body().len()))
    }

    #[test]
    fn only_get_and_head_of_known_paths_are_answered() {
        assert_eq!(answer("GET", "/", ""), Some((StatusCode::OK, 5)));
        assert_eq!(answer("GET", "/?a=b", ""), Some((StatusCode::OK, 5)));
        assert_eq!(answer("HEAD", "/", ""), Some((StatusCode::OK, 0)));
        assert_eq!(answer("POST", "/", ""), None);
        assert_eq!(answer("GET", "//", ""), None);
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let unmodified = Some((StatusCode::NOT_MODIFIED, 0));
        for known in ["\"1\"", "\"0\", W/\"1\"", "*"] {
            assert_eq!(answer("GET", "/", known), unmodified, "{known}");
        }
        assert_eq!(answer("GET", "/", "\"2\""), Some((StatusCode::OK, 5)));
    }

    #[test]
    fn a_header_that_http_cannot_carry_is_rejected() {
        assert!(StaticFile::new(vec![("a b".into(), "c".into())], vec![]).is_err());
    }
}
