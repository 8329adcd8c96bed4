//! Reads cases from standard input, a line each, and says of each whether the guide's code believes it.

mod genuine;

use http::{HeaderMap, HeaderValue};

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let fields: Vec<&str> = line.split('\t').collect();
        let mut headers = HeaderMap::new();
        for (name, value) in ["webhook-id", "webhook-timestamp", "webhook-signature"].iter().zip(&fields[1..4]) {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        println!("{}", genuine::is_genuine(fields[0], &headers, &decoded(fields[4])));
    }
}

fn decoded(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
