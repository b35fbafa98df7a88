/**
 * Defines a test for `node --test`: runs `save`, and then `check` with each folder that a power
 * loss could have left. `hasReturned` states whether `save` had returned before the power loss. If
 * `check` throws, the test fails, and reports the smallest state for which it did. It must not be
 * inside another test, and its name must be unique in the file.
 */
export function crash(
  name: string,
  save: (folder: string) => unknown,
  check: (folder: string, hasReturned: boolean) => unknown,
  options?: {
    /** Fills the folder before `save`. */
    before?: (folder: string) => unknown
    /** The time limit for all checks, such as `30s`. */
    within?: string
  },
): Promise<void> | undefined
