//! `ttwu check` as users and scripts meet it. Each case is a real process.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs `ttwu check - ARGS` on a text.
fn on(text: &[u8], args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ttwu"))
        .args(["check", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("piped").write_all(text).expect("reads");
    child.wait_with_output().expect("ends")
}

#[track_caller]
fn check(text: &[u8], args: &[&str], code: i32, stdout_has: &str, stderr_has: &str) -> String {
    let output = on(text, args);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let shown = format!("--- stdout\n{stdout}\n--- stderr\n{stderr}");
    assert_eq!(output.status.code(), Some(code), "{shown}");
    assert!(stdout.contains(stdout_has), "no `{stdout_has}` on stdout: {shown}");
    assert!(stderr.contains(stderr_has), "no `{stderr_has}` on stderr: {shown}");
    stdout.into_owned()
}

const SLIP: &[u8] = b"\
> w/o: 7.689 7.485 7.485 7.458 7.524 7.539 7.738 7.693 7.568 7.674=7.5853
> w/ : 7.516 7.941 7.374 7.963 7.881 7.910 7.420 7.556 7.695 7.441=7.6697
> performance improvement w/ patch: -1.01%
";

#[test]
fn a_slip_is_the_answer_no() {
    let text = check(SLIP, &[], 1, "line 3: says -1.01%, should be -1.11% (percentage)", "");
    assert!(
        text.starts_with("standard input: 3 relations between figures checked, 1 inconsistent\n"),
        "{text}"
    );
    let json = check(SLIP, &["--format", "json"], 1, "\"ttwu/check/1\"", "");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["checked"], 3);
    assert_eq!(value["consistent"], false);
    assert_eq!(value["findings"].as_array().map(Vec::len), Some(1));
    let finding = &value["findings"][0];
    assert_eq!(finding["line"], 3);
    assert_eq!(finding["says"], "-1.01%");
    assert_eq!(finding["should_be"], "-1.11%");
    assert_eq!(finding["kind"], "percentage");
}

#[test]
fn consistent_figures_are_the_answer_yes() {
    let row = b"Amean     1         58.69 (   0.00%)       30.21 *  48.53%*       47.48 *  19.10%*\n";
    check(row, &[], 0, "2 relations between figures checked, all consistent", "");
    let json = check(row, &["--format", "json"], 0, "", "");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (value["consistent"].as_bool(), value["findings"].as_array().map(Vec::len)),
        (Some(true), Some(0))
    );
}

#[test]
fn nothing_to_check_is_not_consistent() {
    check(b"Looks good to me.\n", &[], 0, "nothing to check", "");
    let json = check(b"Looks good to me.\n", &["--format", "json"], 0, "", "");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((value["checked"].as_u64(), value["consistent"].is_null()), (Some(0), true));
}

#[test]
fn bad_input_is_exit_code_2() {
    check(b"", &[], 2, "", "standard input: empty");
    check(b" \n\t\n", &[], 2, "", "standard input: empty");
    check(b"PERFILE2\0\0\0\0", &[], 2, "", "not a text");
    let output =
        Command::new(env!("CARGO_BIN_EXE_ttwu")).args(["check", "/nonexistent.txt"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent.txt"), "{output:?}");
    let usage = Command::new(env!("CARGO_BIN_EXE_ttwu")).arg("check").output().expect("runs");
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn odd_texts_are_read() {
    check(b"caf\xe9 1.0 -> 2.0 (100%)\r\n", &[], 0, "1 relation between figures checked", "");
    check("7.5853 \u{2192} 7.6697 (\u{2212}1.01\u{a0}%)\n".as_bytes(), &[], 1, "should be -1.11%", "");
    let large = b"Amean 1 58.69 (0.00%) 30.21 (48.53%)\n".repeat(100_000);
    check(&large, &[], 0, "100000 relations between figures checked, all consistent", "");
}
