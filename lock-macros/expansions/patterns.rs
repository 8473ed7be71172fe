#[distributed_lock(key = "order:<id>:<user>")]
async fn handler(
    Path(id): Path<u64>,
    Extension(Session { user, .. }): Extension<Session>,
    _: Transaction,
    unused: u8,
) -> Result<(), Error> {
    #![allow(unused_variables)]
    log(user).await
}
