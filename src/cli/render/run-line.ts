/** One run in one line, and in more when something went wrong. */
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import type { RunHistory } from '../../runtime/run/history.ts';

const STATES: Readonly<Record<RunHistory['state'], string>> = {
  finished: 'finished',
  failed: 'failed',
  cancelled: 'was cancelled',
  'at work': 'is at work',
  interrupted: 'was interrupted: curlew resume continues it',
};

type Told = Pick<RunHistory, 'run' | 'kind' | 'began' | 'state' | 'message'>;

/** `20261121T101500Z-3f2a, install, finished`; the message of a failure below it. */
export function runLine({ run, kind, state, message }: Told): string {
  const failed = message === undefined || state === 'finished' ? '' : `\n  ${visible(redact(message))}`;
  return `${run}${kind === undefined ? '' : `, ${kind}`}, ${STATES[state]}${failed}`;
}
