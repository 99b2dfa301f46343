//! What a front thread has to itself: the mounts, each with its table, and what these share. Nobody
//! else touches it, so there are no locks.

use crate::Options;
use crate::mounts::{Arrival, Gone, Mount};
use crate::options::MountOptions;
use crate::proxy::Proxy;
use crate::pump;
use crate::shed::Shedder;
use crate::stats;
use crate::table::Table;
use door::mounts::Mounts;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use wire::control::MountId;
use wire::doorbell;

thread_local! {
    static HERE: OnceCell<Here> = const { OnceCell::new() };
}

/// Gives the calling thread what is its own.
pub fn install(here: Here) {
    HERE.with(|cell| assert!(cell.set(here).is_ok(), "a thread is installed once"));
}

/// Uses what is the calling thread's.
pub fn with<T>(use_it: impl FnOnce(&Here) -> T) -> T {
    HERE.with(|cell| use_it(cell.get().expect("installed when the thread started")))
}

/// The server's settings.
pub fn options() -> &'static Options {
    with(|here| here.options)
}

/// The settings of a mount that has requests.
pub fn mount_options(mount: MountId) -> MountOptions {
    with(|here| here.find(mount, |mounted| mounted.mount.options)).unwrap_or_default()
}

/// The queue of a mount that other servers run.
pub fn proxy(mount: MountId) -> Option<Arc<Proxy>> {
    with(|here| here.find(mount, |mounted| mounted.proxy.clone())).flatten()
}

/// A mount that has requests.
pub fn mount(mount: MountId) -> Option<Arc<Mount>> {
    with(|here| here.find(mount, |mounted| mounted.mount.clone()))
}

/// Before a line of the log that is about this mount.
pub fn tag(mount: MountId) -> String {
    with(|here| here.find(mount, |mounted| mounted.mount.tag())).unwrap_or_default()
}

/// Where a request of this host and path goes, and how much of the path names that place.
pub fn route(host: Option<&str>, path: &str) -> Option<(MountId, usize)> {
    with(|here| {
        let routes = here.routes.borrow();
        match path {
            "*" => routes.mounts.of_server(host).map(|mount| (mount, 0)),
            path => routes.mounts.find(host, path.as_bytes()),
        }
    })
}

/// Uses the way to mounts.
pub fn with_routes<T>(use_it: impl FnOnce(&Routes) -> T) -> T {
    with(|here| use_it(&here.routes.borrow()))
}

/// The way to mounts.
#[derive(Default)]
pub struct Routes {
    /// Those that are not to go.
    pub mounts: Mounts<MountId>,
    /// The only one there is lies where a web server in front says.
    pub implied: Option<MountId>,
}

/// Replies are looked at after so many puts even if the thread never runs out of work.
const PUTS_BETWEEN_LOOKS: u64 = 64;

/// A front thread.
pub struct Here {
    /// The server's settings.
    pub options: &'static Options,
    /// The thread's number.
    front: usize,
    /// How many threads the front has.
    count: usize,
    /// Rung when a mount gets its first request in flight, or is to go.
    busy: Arc<Notify>,
    /// By their ids.
    mounts: RefCell<Vec<Option<Mounted>>>,
    routes: RefCell<Routes>,
    /// Requests put since the thread started.
    puts: Cell<u64>,
    /// How many there were when it last looked at replies.
    looked_at: Cell<u64>,
}

/// A mount, as one thread has it.
struct Mounted {
    mount: Arc<Mount>,
    /// Its slots, if it has workers.
    table: Option<Table>,
    /// The queue before other servers, if these run it.
    proxy: Option<Arc<Proxy>>,
    /// Requests that are the mount's and in none of its slots.
    held: Cell<usize>,
    shedder: RefCell<Shedder>,
    /// It is to go. After the table, whose segment is to be let go before anybody is told.
    gone: Option<Arc<Gone>>,
}

impl Mounted {
    fn is_done(&self) -> bool {
        let idle = self.table.as_ref().is_none_or(|table| table.in_flight() == 0);
        idle && self.held.get() == 0
    }
}

impl Here {
    /// Thread `front` of `count`, without mounts.
    pub fn new(options: &'static Options, front: usize, count: usize) -> Here {
        Here {
            options,
            front,
            count,
            busy: Arc::default(),
            mounts: RefCell::default(),
            routes: RefCell::default(),
            puts: Cell::new(0),
            looked_at: Cell::new(0),
        }
    }

    /// A mount comes, or one that is there has new settings.
    pub fn mount(&self, arrival: Arrival) {
        let Arrival { mount, ways, proxy } = arrival;
        let mut mounts = self.mounts.borrow_mut();
        let place = usize::from(mount.id);
        stats::comes(mount.id(), &mount.name);
        if mounts.len() <= place {
            mounts.resize_with(place + 1, || None);
        }
        match &mut mounts[place] {
            Some(present) => {
                // The same servers keep their queue.
                if present.mount.serves != mount.serves {
                    present.proxy = proxy;
                }
                present.mount = mount;
            }
            new => {
                let table = ways.map(|(segment, exchange)| {
                    Table::new(segment, self.front, self.count, exchange.into(), self.busy.clone())
                });
                let (held, shedder, gone) = (Cell::default(), RefCell::default(), None);
                *new = Some(Mounted { mount, table, proxy, held, shedder, gone });
            }
        }
        self.find_ways(&mounts);
    }

    fn find_ways(&self, mounts: &[Option<Mounted>]) {
        let there = mounts.iter().flatten().filter(|mounted| mounted.gone.is_none());
        let there: Vec<&Mount> = there.map(|mounted| &*mounted.mount).collect();
        let is_implied = |only: &&&Mount| !only.declared && only.path.is_empty();
        let implied = there.first().filter(|_| there.len() == 1).filter(is_implied);
        let implied = implied.map(|only| only.id());
        let all = there.iter().map(|mount| (mount.id(), &mount.hosts[..], &mount.path[..]));
        *self.routes.borrow_mut() = Routes { mounts: Mounts::new(all), implied };
    }

    /// A mount gets no new requests, and goes when it has none.
    pub fn unmount(&self, mount: MountId, gone: Arc<Gone>) {
        let mut mounts = self.mounts.borrow_mut();
        if let Some(Some(mounted)) = mounts.get_mut(usize::from(mount.0)) {
            mounted.gone = Some(gone);
            self.busy.notify_one();
        }
        self.find_ways(&mounts);
    }

    /// Lets go of the mounts that are to go and have no requests.
    pub fn let_go(&self) {
        let is_over = |mounted: &Mounted| mounted.gone.is_some() && mounted.is_done();
        for place in self.mounts.borrow_mut().iter_mut() {
            place.take_if(|mounted| is_over(mounted));
        }
    }

    /// Whether there is this mount.
    pub fn has(&self, mount: MountId) -> bool {
        self.find(mount, |_| ()).is_some()
    }

    fn find<T>(&self, mount: MountId, use_it: impl FnOnce(&Mounted) -> T) -> Option<T> {
        let mounts = self.mounts.borrow();
        mounts.get(usize::from(mount.0))?.as_ref().map(use_it)
    }

    /// Uses a mount's table. None: it has none.
    pub fn table<T>(&self, mount: MountId, use_it: impl FnOnce(&Table) -> T) -> Option<T> {
        self.find(mount, |mounted| mounted.table.as_ref().map(use_it)).flatten()
    }

    fn any(&self, mut which: impl FnMut(&Table) -> bool) -> bool {
        let mounts = self.mounts.borrow();
        mounts.iter().flatten().filter_map(|mounted| mounted.table.as_ref()).any(&mut which)
    }

    fn each(&self, mut use_it: impl FnMut(&Table)) {
        self.any(|table| {
            use_it(table);
            false
        });
    }

    /// Whether requests of any mount wait for a worker.
    pub fn is_behind(&self) -> bool {
        self.any(Table::is_behind)
    }

    /// Requests put since the thread started.
    pub fn requests(&self) -> u64 {
        self.puts.get()
    }

    /// After a put: looks at replies now and then, even under load that never pauses.
    pub fn count_put(&self) {
        self.puts.set(self.puts.get() + 1);
        if self.puts.get() - self.looked_at.get() >= PUTS_BETWEEN_LOOKS {
            self.look();
        }
    }

    /// Wakes whoever waits for a slot that has news. True if there was anything to do.
    fn look(&self) -> bool {
        self.looked_at.set(self.puts.get());
        let mut any = false;
        self.each(|table| any |= table.look());
        any
    }

    /// Announces in every segment that the thread sleeps. False: there is something to look at.
    fn announce_sleep(&self) -> bool {
        let mounts = self.mounts.borrow();
        let tables = mounts.iter().flatten().filter_map(|mounted| mounted.table.as_ref());
        doorbell::announce_sleep(tables.map(Table::bell))
    }

    /// Nothing is under way that a tick looks after.
    pub fn is_quiet(&self) -> bool {
        let quiet = |mounted: &Mounted| {
            let idle = mounted.table.as_ref().is_none_or(|table| table.in_flight() == 0);
            idle && mounted.gone.is_none() && !mounted.shedder.borrow().has_unsaid()
        };
        self.mounts.borrow().iter().flatten().all(quiet)
    }

    /// Every few milliseconds while requests are under way: looks for those that have waited too
    /// long, and for one that waits although a worker sleeps.
    pub fn tick(&self, patience: Duration) {
        pump::look();
        for mounted in self.mounts.borrow().iter().flatten() {
            if let Some(table) = &mounted.table {
                mounted.shedder.borrow_mut().look(table, &mounted.mount);
                table.nudge(patience);
            }
        }
        self.let_go();
    }

    /// Waits for the thread's next request, or the next mount that is to go.
    pub fn busy(&self) -> Arc<Notify> {
        self.busy.clone()
    }

    /// Whether windows hold memory that only long replies need.
    pub fn has_touched(&self) -> bool {
        self.any(Table::has_touched)
    }

    /// Gives that memory back; nothing is under way.
    pub fn give_back(&self) {
        self.each(Table::give_back);
    }
}

/// The thread has nothing to do: look for replies, and if there are none announce the sleep.
/// Tasks woken here keep the runtime from sleeping.
pub fn before_sleep() {
    with(|here| while !here.look() && !here.announce_sleep() {});
}

/// The thread is awake: workers need not ring.
pub fn after_sleep() {
    with(|here| here.each(|table| table.bell().awake()));
}

/// A request of a mount's that has no slot there, until this is dropped: the mount waits for it.
pub struct Held(MountId);

impl Held {
    /// One more.
    pub fn by(mount: MountId) -> Held {
        let held = Held(mount);
        held.count(|count| count + 1);
        held
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        with(|here| here.find(self.0, |mounted| mounted.held.set(change(mounted.held.get()))));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.count(|count| count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests;
