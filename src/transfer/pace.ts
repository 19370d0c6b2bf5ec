/** A limit on bytes a second, for all connections together. */

/**
 * Tells after each chunk how many milliseconds to wait before the next one is asked for. `now` is a clock in
 * milliseconds. What was not used while nothing came is not made up for.
 */
export function createPace(bytesPerSecond: number, now: () => number): (bytes: number) => number {
  let due = now();
  return (bytes) => {
    const at = now();
    due = Math.max(due, at) + (bytes / bytesPerSecond) * 1000;
    return due - at;
  };
}
