impl<T: Store> Service<T> {
    #[distributed_lock(key = "{<self.tenant>}:order:<order.id()>", client = &self.locks)]
    async fn place(&mut self, order: Order) -> Result<impl Iterator<Item = u8>> {
        self.store.save(order).await
    }
}
