//! `PING`: checks that every server with locks answers.

use futures_util::future::try_join_all;
use lock_store::{Answer, Failure, Instant, Link, Replied};

use crate::errors;
use crate::resp::Command;
use crate::servers::Servers;
use crate::store::RedisStore;
use crate::transport::connection::Connection;
use crate::transport::script_or_command::Request;

impl RedisStore {
    pub(crate) async fn ping_servers(&self, by: Instant) -> Replied<()> {
        let link = match &self.servers {
            Servers::One(connection) => ping(connection, by).await?,
            Servers::Cluster(cluster) => {
                let masters = cluster.masters(by).await.map_err(Failure::without_effect)?;
                let pings = masters.iter().map(|(_, node)| ping(node, by));
                let answers = try_join_all(pings).await;
                answers.inspect_err(|_| cluster.learn_soon())?;
                Link::SEVERAL
            }
        };
        Ok(Answer::new((), link))
    }
}

async fn ping(connection: &Connection, by: Instant) -> Result<Link, Failure> {
    let request = Request::command(Command::new("PING"));
    let answered = connection.exchange(by, &request, false);
    let answered = answered.await?;
    match answered.result {
        Ok(_) => Ok(answered.link),
        Err(error) => Err(Failure::without_effect(errors::store_error(&error))),
    }
}
