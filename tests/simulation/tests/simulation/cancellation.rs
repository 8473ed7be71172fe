//! Every public future, dropped at every point, in every state: nothing is left.

mod on_redis;
mod simulated;
mod subjects;
