/** One request as data, for a log: no query, no header that could hold a secret. Pure. */
import { redact } from '../core/errors.ts';
import { printableJson } from '../core/json.ts';

export interface Access {
  /** ISO 8601, when the request came. */
  readonly time: string;
  readonly remote: string;
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly route: string;
  readonly status: number;
  /** Bytes of the body that have left. */
  readonly bytes: number;
  readonly ms: number;
  readonly range?: string | undefined;
  readonly agent?: string | undefined;
  /** The answer ended before its end. */
  readonly cut?: true | undefined;
  /** What went wrong on this side. */
  readonly error?: string | undefined;
}

const LONGEST = 300;

/** What a client said, as it may stand in a log. */
export function shown(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redact(text).slice(0, LONGEST);
}

/** The path of a target, without its query. */
export function pathOf(target: string): string {
  return redact(target.split(/[?#]/, 1)[0] ?? '').slice(0, LONGEST);
}

/** One line for people; the other form is the whole of it as JSON. */
export function formatAccess(access: Access): string {
  const { time, remote, method, path, status, bytes, ms, cut, error } = access;
  const words = [time, remote, method, visible(path), status, `${bytes} bytes`, `${ms} ms`];
  return [...words, ...(cut ? ['cut'] : []), ...(error === undefined ? [] : [visible(error)])].join(' ');
}

function visible(text: string): string {
  return printableJson(text).slice(1, -1);
}
