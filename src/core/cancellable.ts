/** Options of a function that stops when its signal is aborted. */
export interface Cancellable {
  readonly signal: AbortSignal;
}
