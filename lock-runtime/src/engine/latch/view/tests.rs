//! For whom there is nothing more to find out.

use super::*;

#[test]
fn the_last_waiter_of_whom_all_is_known_saw_it_open_or_gone_or_was_refused() {
    for (opened, lost, refused, settled) in [
        (0, 0, 0, 0),
        (3, 1, 2, 3),
        (1, 3, 2, 3),
        (1, 2, 3, 3),
        (2, 2, 0, 2),
    ] {
        let view = LatchView {
            opened,
            lost,
            refused: (refused, None),
            ..LatchView::default()
        };
        assert_eq!(view.settled(), settled);
    }
}
