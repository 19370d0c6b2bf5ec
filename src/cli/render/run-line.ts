/** Renders a run as one line, with additional lines after a failure. */
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import type { RunHistory } from '../../runtime/history/history.ts';

const STATES: Readonly<Record<RunHistory['state'], string>> = {
  finished: 'finished',
  failed: 'failed',
  cancelled: 'was canceled',
  'at work': 'is in progress',
  interrupted: 'was interrupted: curlew resume continues it',
};

type RunSummary = Pick<RunHistory, 'run' | 'kind' | 'began' | 'state' | 'message'>;

/** `20261121T101500Z-3f2a, install, finished`, followed by the message of a failure. */
export function runLine({ run, kind, state, message }: RunSummary): string {
  const failed = message === undefined || state === 'finished' ? '' : `\n  ${visible(redact(message))}`;
  return `${run}${kind === undefined ? '' : `, ${kind}`}, ${STATES[state]}${failed}`;
}
