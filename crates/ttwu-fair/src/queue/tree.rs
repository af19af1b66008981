//! The queue's order: a red-black tree whose shape is the kernel's, node for node.
//!
//! Why a tree of that very shape, where any balanced one would find the same minimum: the picks of the EEVDF postings of
//! 2023 and of v6.6 walk down it and stop early, so that among equal deadlines (and, in the postings, not only there) the
//! answer depends on which node stands above which. Rebalancing is the textbook's; insertion puts an equal key to the right.
//!
//! Every node knows the extremes of its subtree that its generation's picks ask for, and no others: keeping them up is half
//! of what an insertion costs.

use crate::Kernel;
use crate::entity::Entities;
use crate::mutation::{Mutation, broken};

/// No node.
pub(crate) const NIL: u32 = u32::MAX;

/// What sorts the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Up to v6.6.
    Vruntime,
    /// v6.8 and later.
    Deadline,
}

/// What nodes know of their subtrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    /// Nothing (CFS).
    Nothing,
    /// `min_deadline` (up to v6.6).
    Deadlines,
    /// `min_vruntime`, `min_slice` and `max_slice`.
    VruntimesAndSlices,
}

/// Is virtual time `a` before `b`? They wrap; the distance is taken to be less than 2⁶³.
#[must_use]
pub(crate) const fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// An entity's links and what it knows of the subtree below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    parent: u32,
    pub(crate) left: u32,
    pub(crate) right: u32,
    red: bool,
    linked: bool,
    pub(crate) min_deadline: u64,
    pub(crate) min_vruntime: u64,
    min_slice: u64,
    max_slice: u64,
}

impl Node {
    pub(crate) const DETACHED: Self = Self {
        parent: NIL,
        left: NIL,
        right: NIL,
        red: false,
        linked: false,
        min_deadline: 0,
        min_vruntime: 0,
        min_slice: 0,
        max_slice: 0,
    };
}

/// The queued entities other than the running one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) root: u32,
    leftmost: u32,
    order: Order,
    knows: Knows,
}

impl Tree {
    pub(crate) const fn new(kernel: Kernel) -> Self {
        let (order, knows) = match kernel {
            Kernel::V5_5 | Kernel::V5_9 | Kernel::V5_15 | Kernel::V5_19 | Kernel::V6_1 => {
                (Order::Vruntime, Knows::Nothing)
            }
            Kernel::Eevdf202304 | Kernel::V6_6 => (Order::Vruntime, Knows::Deadlines),
            Kernel::V6_12 | Kernel::V7_2 => (Order::Deadline, Knows::VruntimesAndSlices),
        };
        Self { root: NIL, leftmost: NIL, order, knows }
    }

    /// The first in order.
    pub(crate) fn leftmost(&self) -> Option<u32> {
        Some(self.leftmost).filter(|&id| id != NIL)
    }

    /// The entity after `id` in order.
    pub(crate) fn next(&self, e: &Entities, id: u32) -> Option<u32> {
        let mut node = e.node(id).right;
        if node != NIL {
            while e.node(node).left != NIL {
                node = e.node(node).left;
            }
            return Some(node);
        }
        let mut child = id;
        let mut parent = e.node(id).parent;
        while parent != NIL && e.node(parent).right == child {
            child = parent;
            parent = e.node(parent).parent;
        }
        Some(parent).filter(|&id| id != NIL)
    }

    /// The shortest slice in the tree.
    pub(crate) fn min_slice(&self, e: &Entities) -> Option<u64> {
        (self.root != NIL).then(|| e.node(self.root).min_slice)
    }

    /// The longest slice in the tree.
    pub(crate) fn max_slice(&self, e: &Entities) -> Option<u64> {
        (self.root != NIL).then(|| e.node(self.root).max_slice)
    }

    fn key(&self, e: &Entities, id: u32) -> u64 {
        match self.order {
            Order::Vruntime => e.at(id).vruntime,
            Order::Deadline => e.at(id).deadline,
        }
    }

    /// Links `id`; equal keys go behind.
    pub(crate) fn insert(&mut self, e: &mut Entities, id: u32) {
        assert!(!e.node(id).linked, "an entity is in one tree at most");
        let key = self.key(e, id);
        let (mut parent, mut at, mut is_leftmost, mut left) = (NIL, self.root, true, true);
        while at != NIL {
            parent = at;
            left = before(key, self.key(e, at)) || (broken(Mutation::TieGoesFirst) && key == self.key(e, at));
            if left {
                at = e.node(at).left;
            } else {
                at = e.node(at).right;
                is_leftmost = false;
            }
        }
        self.link_leaf(e, id, parent);
        if parent == NIL {
            self.root = id;
        } else if left {
            e.node_mut(parent).left = id;
        } else {
            e.node_mut(parent).right = id;
        }
        if is_leftmost {
            self.leftmost = id;
        }
        self.widen_upwards(e, parent, id);
        self.fix_insert(e, id);
    }

    fn link_leaf(&self, e: &mut Entities, id: u32, parent: u32) {
        let entity = e.at_mut(id);
        entity.node = Node { parent, red: true, linked: true, ..Node::DETACHED };
        match self.knows {
            Knows::Nothing => {}
            Knows::Deadlines => entity.node.min_deadline = entity.deadline,
            Knows::VruntimesAndSlices => {
                entity.node.min_vruntime = entity.vruntime;
                (entity.node.min_slice, entity.node.max_slice) = (entity.slice, entity.slice);
            }
        }
    }

    /// Unlinks `id`.
    pub(crate) fn remove(&mut self, e: &mut Entities, id: u32) {
        let node = *e.node(id);
        assert!(node.linked, "an entity that is removed is in the tree");
        if self.leftmost == id {
            self.leftmost = self.next(e, id).unwrap_or(NIL);
        }
        // (child, parent): where a black may be missing after the splice.
        let two_children = node.left != NIL && node.right != NIL;
        let (child, parent, lost_black) = if !two_children {
            let child = if node.left == NIL { node.right } else { node.left };
            self.replace(e, id, child);
            (child, node.parent, !node.red)
        } else {
            self.splice_successor(e, id, node)
        };
        if parent != NIL && !broken(Mutation::StaleSubtree) {
            if two_children {
                // The heir stands in a place that it knows nothing of yet.
                self.refresh_to_root(e, parent);
            } else {
                self.refresh_upwards(e, parent);
            }
        }
        *e.node_mut(id) = Node::DETACHED;
        if lost_black {
            self.fix_remove(e, child, parent);
        }
    }

    /// A linked entity's slice changed: recomputes what is known above it.
    pub(crate) fn slice_changed(&self, e: &mut Entities, id: u32) {
        self.refresh_upwards(e, id);
    }

    /// Puts the successor of `id`, which has two children, in its place and colour.
    fn splice_successor(&mut self, e: &mut Entities, id: u32, node: Node) -> (u32, u32, bool) {
        let mut heir = node.right;
        while e.node(heir).left != NIL {
            heir = e.node(heir).left;
        }
        let old = *e.node(heir);
        let parent = if old.parent == id {
            heir
        } else {
            self.replace(e, heir, old.right);
            e.node_mut(heir).right = node.right;
            e.node_mut(node.right).parent = heir;
            old.parent
        };
        self.replace(e, id, heir);
        let heir_node = e.node_mut(heir);
        heir_node.left = node.left;
        heir_node.red = node.red;
        e.node_mut(node.left).parent = heir;
        (old.right, parent, !old.red)
    }

    /// Hangs `child` (or nothing) where `id` hung.
    fn replace(&mut self, e: &mut Entities, id: u32, child: u32) {
        let parent = e.node(id).parent;
        if parent == NIL {
            self.root = child;
        } else if e.node(parent).left == id {
            e.node_mut(parent).left = child;
        } else {
            e.node_mut(parent).right = child;
        }
        if child != NIL {
            e.node_mut(child).parent = parent;
        }
    }

    fn is_red(e: &Entities, id: u32) -> bool {
        id != NIL && e.node(id).red
    }

    fn child(e: &Entities, id: u32, side: Side) -> u32 {
        match side {
            Side::Left => e.node(id).left,
            Side::Right => e.node(id).right,
        }
    }

    fn fix_insert(&mut self, e: &mut Entities, mut id: u32) {
        loop {
            let parent = e.node(id).parent;
            if parent == NIL {
                e.node_mut(id).red = false;
                return;
            }
            if !e.node(parent).red {
                return;
            }
            let grand = e.node(parent).parent;
            let side = if e.node(grand).left == parent { Side::Left } else { Side::Right };
            let uncle = Self::child(e, grand, side.other());
            if Self::is_red(e, uncle) {
                e.node_mut(parent).red = false;
                e.node_mut(uncle).red = false;
                e.node_mut(grand).red = true;
                id = grand;
                continue;
            }
            let mut top = parent;
            if Self::child(e, parent, side.other()) == id {
                self.rotate(e, parent, side);
                top = id;
            }
            e.node_mut(top).red = false;
            e.node_mut(grand).red = true;
            self.rotate(e, grand, side.other());
            return;
        }
    }

    fn fix_remove(&mut self, e: &mut Entities, mut id: u32, mut parent: u32) {
        while parent != NIL && !Self::is_red(e, id) {
            let side = if e.node(parent).left == id { Side::Left } else { Side::Right };
            let mut sibling = Self::child(e, parent, side.other());
            if Self::is_red(e, sibling) {
                e.node_mut(sibling).red = false;
                e.node_mut(parent).red = true;
                self.rotate(e, parent, side);
                sibling = Self::child(e, parent, side.other());
            }
            let near = Self::child(e, sibling, side);
            let mut far = Self::child(e, sibling, side.other());
            if !Self::is_red(e, near) && !Self::is_red(e, far) {
                e.node_mut(sibling).red = true;
                id = parent;
                parent = e.node(id).parent;
                continue;
            }
            if !Self::is_red(e, far) {
                e.node_mut(near).red = false;
                e.node_mut(sibling).red = true;
                self.rotate(e, sibling, side.other());
                far = sibling;
                sibling = near;
            }
            e.node_mut(sibling).red = e.node(parent).red;
            e.node_mut(parent).red = false;
            e.node_mut(far).red = false;
            self.rotate(e, parent, side);
            return;
        }
        if id != NIL {
            e.node_mut(id).red = false;
        }
    }

    /// Moves `id` down to `side`; its other child comes up.
    fn rotate(&mut self, e: &mut Entities, id: u32, side: Side) {
        let up = Self::child(e, id, side.other());
        let inner = Self::child(e, up, side);
        self.replace(e, id, up);
        match side {
            Side::Left => {
                e.node_mut(id).right = inner;
                e.node_mut(up).left = id;
            }
            Side::Right => {
                e.node_mut(id).left = inner;
                e.node_mut(up).right = id;
            }
        }
        if inner != NIL {
            e.node_mut(inner).parent = id;
        }
        let below = *e.node(id);
        let top = e.node_mut(up);
        // The same entities are below the top as before.
        (top.min_deadline, top.min_vruntime) = (below.min_deadline, below.min_vruntime);
        (top.min_slice, top.max_slice) = (below.min_slice, below.max_slice);
        e.node_mut(id).parent = up;
        self.refresh(e, id);
    }

    /// `leaf` was linked below `id`: extremes can only widen, up to the first node where they do not.
    fn widen_upwards(&self, e: &mut Entities, mut id: u32, leaf: u32) {
        let Node { min_deadline, min_vruntime, min_slice: slice, .. } = *e.node(leaf);
        while id != NIL {
            let node = e.node_mut(id);
            let widened = match self.knows {
                Knows::Nothing => return,
                Knows::Deadlines => lower(&mut node.min_deadline, min_deadline),
                Knows::VruntimesAndSlices => {
                    let vruntime = lower(&mut node.min_vruntime, min_vruntime);
                    let slices = slice < node.min_slice || slice > node.max_slice;
                    node.min_slice = node.min_slice.min(slice);
                    node.max_slice = node.max_slice.max(slice);
                    vruntime || slices
                }
            };
            if !widened {
                return;
            }
            id = node.parent;
        }
    }

    /// Recomputes from `id` up to the root, or to the first node that knew it already: what stands above that follows from it.
    fn refresh_upwards(&self, e: &mut Entities, mut id: u32) {
        while id != NIL && self.refresh(e, id) {
            id = e.node(id).parent;
        }
    }

    /// Recomputes all the way to the root.
    fn refresh_to_root(&self, e: &mut Entities, mut id: u32) {
        while id != NIL && self.knows != Knows::Nothing {
            self.refresh(e, id);
            id = e.node(id).parent;
        }
    }

    /// Recomputes what `id` knows of its subtree. Did it change?
    fn refresh(&self, e: &mut Entities, id: u32) -> bool {
        let entity = e.at(id);
        let (left, right) = (entity.node.left, entity.node.right);
        match self.knows {
            Knows::Nothing => false,
            Knows::Deadlines => {
                let mut min = entity.deadline;
                if left != NIL {
                    lower(&mut min, e.node(left).min_deadline);
                }
                if right != NIL {
                    lower(&mut min, e.node(right).min_deadline);
                }
                std::mem::replace(&mut e.node_mut(id).min_deadline, min) != min
            }
            Knows::VruntimesAndSlices => {
                let (mut min, mut shortest, mut longest) = (entity.vruntime, entity.slice, entity.slice);
                for child in [left, right] {
                    if child != NIL {
                        let below = e.node(child);
                        lower(&mut min, below.min_vruntime);
                        shortest = shortest.min(below.min_slice);
                        longest = longest.max(below.max_slice);
                    }
                }
                let node = e.node_mut(id);
                let known = (node.min_vruntime, node.min_slice, node.max_slice);
                (node.min_vruntime, node.min_slice, node.max_slice) = (min, shortest, longest);
                known != (min, shortest, longest)
            }
        }
    }
}

/// Lowers a virtual time to `to`. Was it above?
fn lower(time: &mut u64, to: u64) -> bool {
    let lower = before(to, *time);
    if lower {
        *time = to;
    }
    lower
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

#[cfg(test)]
impl Tree {
    /// Checks colours, links, order and what nodes know; returns the entities in order.
    pub(crate) fn check(&self, e: &Entities) -> Vec<u32> {
        fn walk(tree: &Tree, e: &Entities, id: u32, parent: u32, out: &mut Vec<u32>) -> usize {
            if id == NIL {
                return 1;
            }
            let node = *e.node(id);
            assert_eq!(node.parent, parent, "parent of {id}");
            assert!(!(node.red && Tree::is_red(e, parent)), "red under red at {id}");
            let left = walk(tree, e, node.left, id, out);
            out.push(id);
            let right = walk(tree, e, node.right, id, out);
            assert_eq!(left, right, "black height at {id}");
            let mut copy = e.clone();
            tree.refresh(&mut copy, id);
            assert_eq!(*copy.node(id), node, "subtree knowledge of {id}");
            left + usize::from(!node.red)
        }
        let mut out = Vec::new();
        walk(self, e, self.root, NIL, &mut out);
        assert!(!Self::is_red(e, self.root), "root is black");
        assert_eq!(self.leftmost(), out.first().copied(), "leftmost");
        for pair in out.windows(2) {
            assert!(!before(self.key(e, pair[1]), self.key(e, pair[0])), "order");
            assert_eq!(self.next(e, pair[0]), Some(pair[1]), "successor");
        }
        out
    }
}
