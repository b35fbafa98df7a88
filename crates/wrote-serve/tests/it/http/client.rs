//! An HTTP/1.1 client that sends its input byte for byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A connection to a server.
pub struct Client(BufReader<TcpStream>);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    /// The lines of the head.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.iter().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|pair| pair.1)
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub fn connect(address: &str) -> Client {
        Client(BufReader::new(TcpStream::connect(address).unwrap()))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        self.0.get_mut()
    }

    /// Sends a request with a body and waits for its answer.
    pub fn post(&mut self, path: &str, headers: &str, body: &[u8]) -> Answer {
        let len = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n{headers}\r\n"
        );
        self.send(&[head.as_bytes(), body].concat());
        self.answer()
    }

    /// Appends lines, and waits for the answer.
    pub fn append(&mut self, lines: &str) -> Answer {
        self.post("/append?by=lines", "", lines.as_bytes())
    }

    /// Sends a request without a body and waits for its answer.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        self.answer()
    }

    /// Reads a complete answer.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        if let Some(len) = answer.header("content-length") {
            answer.body = vec![0; len.parse().unwrap()];
            self.0.read_exact(&mut answer.body).unwrap();
        } else if answer.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                answer.body.extend(chunk);
            }
        }
        answer
    }

    /// Reads the head of an answer.
    pub fn head(&mut self) -> Answer {
        let status = self.line();
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.unwrap_or_else(|| panic!("{status:?} is no status"));
        let mut head = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Answer { code, head, body: Vec::new() };
            }
            head.push(line);
        }
    }

    /// Reads the next chunk of a body; `None` after the last chunk.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let len = usize::from_str_radix(&self.line(), 16).unwrap();
        let mut chunk = vec![0; len + 2];
        self.0.read_exact(&mut chunk).unwrap();
        chunk.truncate(len);
        (len > 0).then_some(chunk)
    }

    /// Waits for more bytes. Returns whether the connection was closed instead.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.0.fill_buf(), Ok(bytes) if !bytes.is_empty())
    }

    /// Reads until the server closes the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // The server may also reset the connection, because it left bytes unread.
        let _ = self.0.read_to_end(&mut rest);
        rest
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
