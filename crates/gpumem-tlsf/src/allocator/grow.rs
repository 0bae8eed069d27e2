//! A region that grows where it ends, and gives back what is idle there.
//!
//! Its last block is followed by an end, a node without bytes, so that the last block is found at once. What is idle in
//! front of the end is the *tail*. It is not among the other free blocks, in the order of sizes, but behind all of them:
//! cutting the tail while another block serves would let the region grow sooner (dlmalloc calls this preserving the
//! wilderness). A region that grows so takes as much memory as one of endless length would, to the step.

use super::{
    FLAGS, FREE, Node, RegionId, TAIL, Tlsf,
    class::LARGEST,
    lists::{NIL, NO_END},
};

impl Tlsf {
    /// As [`add_region`](Self::add_region), for a region that may [grow](Self::grow) later. `None` also if there is one
    /// already: two that grow would be no better than one that grows, and one that does not.
    pub fn add_growing(&mut self, start: u64, len: u64) -> Option<RegionId> {
        let len = len & !(self.granule() - 1);
        let fits = start & (self.granule() - 1) == 0 && start.checked_add(len).is_some();
        if self.end != NO_END || !fits || len == 0 || len >> self.shift > LARGEST {
            return None;
        }
        let node = self.node(Node { start, word: len, before: NIL, after: NIL, earlier: NIL, later: NIL })?;
        let end = Node { start: start + len, word: 0, before: node, after: NIL, earlier: NIL, later: NIL };
        let Some(end) = self.node(end) else {
            self.vacate(node);
            return None;
        };
        self.nodes[node as usize].after = end;
        self.end = end;
        self.regions += 1;
        self.total_bytes += len;
        self.insert_alone(node, Self::IDLE, 0);
        Some(RegionId(node))
    }

    /// Makes the region that grows longer by so many bytes, all of them idle. Whether that could be: there is one, and
    /// `len` is a number of whole granules that leaves it within what [`add_region`](Self::add_region) takes.
    pub fn grow(&mut self, len: u64) -> bool {
        let Some(end) = self.nodes.get(self.end as usize).copied() else { return false };
        let is_whole = len > 0 && len & (self.granule() - 1) == 0;
        if !is_whole
            || end.start.checked_add(len).is_none()
            || (self.total_bytes + len) >> self.shift > LARGEST
        {
            return false;
        }
        let new = Node {
            start: end.start,
            word: len,
            before: end.before,
            after: self.end,
            earlier: NIL,
            later: NIL,
        };
        let Some(node) = self.node(new) else { return false };
        self.nodes[end.before as usize].after = node;
        let behind = &mut self.nodes[self.end as usize];
        (behind.before, behind.start) = (node, end.start + len);
        self.total_bytes += len;
        self.insert(node, Self::IDLE, 0);
        true
    }

    /// Start and length of the tail: what is idle at the end of the region that grows, up to the last block that is not.
    pub fn tail(&self) -> Option<(u64, u64)> {
        let end = self.nodes.get(self.end as usize)?;
        let last = self.nodes.get(end.before as usize)?;
        (last.word & FLAGS == FREE | TAIL).then(|| (last.start, last.len()))
    }

    /// Makes the region that grows shorter by so many bytes of its tail. Whether that could be: `len` is a number of whole
    /// granules, the tail has as many, and something of the region is left. All of it is taken out by
    /// [`remove_region`](Self::remove_region).
    pub fn shrink(&mut self, len: u64) -> bool {
        let Some((_, tail)) = self.tail() else { return false };
        let last = self.nodes[self.end as usize].before;
        let before = self.nodes[last as usize].before;
        if len == 0 || len & (self.granule() - 1) != 0 || len > tail || (len == tail && before == NIL) {
            return false;
        }
        self.unlink(last);
        self.total_bytes -= len;
        self.nodes[self.end as usize].start -= len;
        if len < tail {
            self.nodes[last as usize].word -= len;
            self.insert_alone(last, Self::IDLE, 0);
        } else {
            self.nodes[before as usize].after = self.end;
            self.nodes[self.end as usize].before = before;
            self.vacate(last);
        }
        true
    }
}
