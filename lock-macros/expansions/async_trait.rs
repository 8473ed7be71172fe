impl Store for Memory {
    #[distributed_lock(key = "store:<self.name>:<id>")]
    fn save<'life0, 'async_trait>(
        &'life0 self,
        id: u32,
    ) -> ::core::pin::Pin<
        Box<
            dyn ::core::future::Future<Output = Result<(), Error>>
                + ::core::marker::Send
                + 'async_trait,
        >,
    >
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let __self = self;
            let id = id;
            let __ret: Result<(), Error> = { __self.write(id).await };
            __ret
        })
    }
}
