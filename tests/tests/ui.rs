//! What the compiler says: functions that have to compile, and mistakes with the messages that explain them.

#[test]
fn functions_compile_and_mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/fail/*.rs");
}
