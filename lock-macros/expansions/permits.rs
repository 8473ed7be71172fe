impl Gateway {
    #[distributed_lock(
        key = "api:<app_id>",
        permits = self.limits.calls,
        client = &self.locks,
        wait = "0s"
    )]
    async fn call(&self, app_id: u64, request: Request) -> Result<Reply, CallError> {
        self.upstream.send(request).await
    }

    #[distributed_lock(key = "config", mode = "read")]
    async fn config(&self) -> Result<Config, CallError> {
        self.store.read().await
    }
}
