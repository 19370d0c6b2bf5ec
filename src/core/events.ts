/** Progress as data. Listeners display it: a terminal, plain lines, or nothing. */

export type ProgressEvent =
  | {
      readonly type: 'step-started';
      readonly id: string;
      readonly title: string;
      /** Bytes to transfer, if known. */
      readonly bytes?: number | undefined;
    }
  /** `bytes` counts from the start of the step; `total` replaces any earlier value. */
  | {
      readonly type: 'step-progress';
      readonly id: string;
      readonly bytes: number;
      readonly total?: number | undefined;
    }
  /** A line printed by a program that the step runs. */
  | { readonly type: 'step-log'; readonly id: string; readonly text: string }
  | { readonly type: 'step-done'; readonly id: string; readonly outcome: string }
  | { readonly type: 'step-failed'; readonly id: string; readonly error: Error }
  | { readonly type: 'note'; readonly level: 'info' | 'warning'; readonly text: string };

export type Report = (event: ProgressEvent) => void;

/** Returns what reports further bytes of a step, from `first` on, and never more than `most`. */
export function countBytes(
  report: Report,
  id: string,
  { first = 0, most = Infinity }: { readonly first?: number; readonly most?: number } = {},
): (more: number) => void {
  let bytes = first;
  return (more) => {
    bytes = Math.min(bytes + more, most);
    report({ type: 'step-progress', id, bytes });
  };
}

/** Runs `work` between a `step-started` and a `step-done` or `step-failed`. */
export async function reportStep<Result>(
  report: Report,
  step: { readonly id: string; readonly title: string; readonly bytes?: number | undefined },
  work: () => Promise<Result>,
  outcome: (result: Result) => string,
): Promise<Result> {
  report({ type: 'step-started', ...step });
  try {
    const result = await work();
    report({ type: 'step-done', id: step.id, outcome: outcome(result) });
    return result;
  } catch (error) {
    report({ type: 'step-failed', id: step.id, error: error instanceof Error ? error : new Error(String(error)) });
    throw error;
  }
}
