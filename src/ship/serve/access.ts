/** The log entry of one request, without its query and headers that may contain a secret. Pure. */
import { redact } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';

export interface Access {
  /** ISO 8601, when the request arrived. */
  readonly time: string;
  readonly remote: string;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  readonly route: string;
  readonly status: number;
  /** Sent bytes of the body. */
  readonly bytes: number;
  readonly ms: number;
  readonly range?: string | undefined;
  readonly agent?: string | undefined;
  /** The response was truncated. */
  readonly cut?: true | undefined;
  /** Error on the server. */
  readonly error?: string | undefined;
}

const MAX_LENGTH = 300;

/** A client's text, redacted and truncated for the log. */
export function loggable(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redact(text).slice(0, MAX_LENGTH);
}

/** The path of a request target, without query. */
export function pathOf(target: string): string {
  return redact(target.split(/[?#]/, 1)[0] ?? '').slice(0, MAX_LENGTH);
}

/** One line of text. The alternative log format is JSON. */
export function formatAccess(access: Access): string {
  const { time, remote, method, path, status, bytes, ms, cut, error } = access;
  const fields = [time, remote, method, visible(path), status, `${bytes} bytes`, `${ms} ms`];
  return [...fields, ...(cut ? ['cut'] : []), ...(error === undefined ? [] : [visible(error)])].join(' ');
}

function visible(text: string): string {
  return printableJson(text).slice(1, -1);
}
