//! Tables in regions: the keys of a region are close together, so that text of one script reads few
//! lines of memory.

/// The first place and the number of places of each region.
#[derive(Debug)]
pub struct Regions<const COUNT: usize>(Box<[[u32; 2]; COUNT]>);

impl<const COUNT: usize> Regions<COUNT> {
    /// Makes adjacent regions of these sizes. Also returns the number of all places.
    pub fn of(sizes: [u32; COUNT]) -> (Self, usize) {
        let mut places = 0;
        let regions = sizes.map(|size| {
            places += size;
            [places - size, size]
        });
        (Regions(Box::new(regions)), places as usize)
    }

    /// Returns the place of a key in its region. The higher bits of the hash decide.
    #[inline(always)]
    pub fn place(&self, region: usize, hash: u32) -> usize {
        let [start, size] = self.0[region];
        start as usize + ((hash as u64 * size as u64) >> 32) as usize
    }
}
