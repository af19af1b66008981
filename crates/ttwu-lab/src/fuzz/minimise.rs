//! Taking away from a scenario all that its failure does not need.

use super::draft::{Draft, Work};

/// The smallest scenario found that still fails: each piece is taken away in turn, until none can go. Greedy, so another
/// order might end smaller; `fails` is asked at most `tries` times.
pub(super) fn minimise(mut draft: Draft, tries: usize, fails: &mut dyn FnMut(&Draft) -> bool) -> Draft {
    let mut left = tries;
    loop {
        let smaller = steps(&draft).into_iter().find(|candidate| {
            if left == 0 {
                return false;
            }
            left -= 1;
            fails(candidate)
        });
        match smaller {
            Some(smaller) => draft = smaller,
            None => return draft,
        }
    }
}

/// All scenarios that are one step smaller, those that take away most first.
fn steps(draft: &Draft) -> Vec<Draft> {
    let mut steps = Vec::new();
    let mut step = |change: &Change<'_>| {
        let mut smaller = draft.clone();
        change(&mut smaller);
        if smaller != *draft {
            steps.push(smaller);
        }
    };
    for shape in
        ["1 socket x 1 core", "1 socket x 2 cores", "1 socket x 2 cores x 2 threads", "2 sockets x 2 cores"]
    {
        // Only from a larger one: the list is in the order of size.
        if draft.topology[0] == shape {
            break;
        }
        step(&|draft| draft.topology[0] = shape.to_owned());
    }
    for index in 1..draft.topology.len() {
        step(&|draft| drop(draft.topology.remove(index)));
    }
    match &draft.work {
        Work::Named(names) if names.len() > 1 => {
            for index in 0..names.len() {
                step(&|draft| {
                    if let Work::Named(names) = &mut draft.work {
                        names.remove(index);
                    }
                });
            }
        }
        Work::Named(_) => {}
        Work::Own(tasks) => own_steps(tasks.len(), draft, &mut step),
    }
    step(&|draft| draft.changes.clear());
    step(&|draft| draft.settings.clear());
    step(&|draft| draft.costs.clear());
    for index in 0..draft.changes.len() {
        step(&|draft| drop(draft.changes.remove(index)));
    }
    for index in 0..draft.settings.len() {
        step(&|draft| drop(draft.settings.remove(index)));
    }
    for index in 0..draft.costs.len() {
        step(&|draft| drop(draft.costs.remove(index)));
    }
    if draft.duration_us > 100 {
        step(&|draft| draft.duration_us /= 2);
    }
    step(&|draft| draft.seed = 1);
    step(&|draft| draft.preset = "skylake-server");
    steps
}

/// A way to make a draft smaller.
type Change<'a> = dyn Fn(&mut Draft) + 'a;

fn own_steps(tasks: usize, draft: &Draft, step: &mut dyn FnMut(&Change<'_>)) {
    let Work::Own(own) = &draft.work else { return };
    let mut each = |change: &dyn Fn(&mut Vec<super::draft::OwnTask>)| {
        step(&|draft| {
            if let Work::Own(tasks) = &mut draft.work {
                change(tasks);
            }
        });
    };
    for index in 0..tasks {
        if tasks > 1 {
            each(&|tasks| drop(tasks.remove(index)));
        }
        if own[index].count > 1 {
            each(&|tasks| tasks[index].count = 1);
            each(&|tasks| tasks[index].count -= 1);
        }
        each(&|tasks| tasks[index].properties.clear());
        for property in 0..own[index].properties.len() {
            each(&|tasks| drop(tasks[index].properties.remove(property)));
        }
        if own[index].ops.len() > 1 {
            for op in 0..own[index].ops.len() {
                each(&|tasks| drop(tasks[index].ops.remove(op)));
            }
        }
        each(&|tasks| tasks[index].forever = false);
    }
}
