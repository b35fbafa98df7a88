/**
 * Defines a test for `node --test`: runs `save`, and then `check` with each folder that a power
 * loss could have left; `hasReturned` tells whether `save` had returned before. The test fails with
 * the smallest state for which `check` throws. It stands outside of other tests, and no other in the
 * file has its name.
 */
export function crash(
  name: string,
  save: (folder: string) => unknown,
  check: (folder: string, hasReturned: boolean) => unknown,
  options?: {
    /** Fills the folder before. */
    before?: (folder: string) => unknown
    /** The time limit of all checks: `30s`. */
    within?: string
  },
): Promise<void> | undefined
