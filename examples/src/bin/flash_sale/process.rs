//! One process of a sale with several. It sells to its share of the buyers and reports to its
//! parent, line by line.

use std::fmt::Display;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Failure;
use crate::args::{ProcessArgs, URL_VARIABLE, usage};
use crate::event::{Event, FAILED, GO, READY};
use crate::inventory::Inventory;
use crate::shop::{SaleError, Shop};

pub(crate) async fn run(args: ProcessArgs) -> Result<(), Failure> {
    let url = std::env::var(URL_VARIABLE)
        .map_err(|_| usage("`process` is what the sale starts its own processes with"))?;
    let sold = match connect(&args, url).await {
        Ok((shop, events)) => sell(&args, shop, events).await?,
        Err(error) => Err(error),
    };
    // The parent tells the user, once for all processes.
    if let Err(error) = sold {
        print(format_args!("{FAILED}{error}"))?;
    }
    Ok(())
}

fn print(line: impl Display) -> std::io::Result<()> {
    writeln!(stdout(), "{line}").map_err(|_| parent_is_gone())
}

fn parent_is_gone() -> std::io::Error {
    std::io::Error::other("the process that started this one is gone, so this one ends as well")
}

async fn connect(
    args: &ProcessArgs,
    url: String,
) -> Result<(Shop, UnboundedReceiver<Event>), SaleError> {
    let inventory = Inventory::in_redis(&url, args.product_id).await?;
    if !args.no_lock {
        lock_runtime::init(url).await?;
    }
    let (told, events) = unbounded_channel();
    let shop = Shop::new(Arc::new(inventory), told, args.hang_after);
    Ok((shop, events))
}

/// The outer error means that the parent is gone. Then no one can be told, and no more is to be
/// sold.
async fn sell(
    args: &ProcessArgs,
    shop: Shop,
    mut events: UnboundedReceiver<Event>,
) -> std::io::Result<Result<(), SaleError>> {
    print(READY)?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    if line.trim_end() != GO {
        return Err(parent_is_gone());
    }
    let selling = tokio::spawn(shop.open(args.product_id, args.buyers, !args.no_lock));
    while let Some(event) = events.recv().await {
        print(event)?;
    }
    match selling.await {
        Ok(sold) => Ok(sold),
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}
