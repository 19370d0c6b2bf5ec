/** Describes failed requests. Pure. */
import * as v from 'valibot';
import { visible } from '../../core/diagnostic.ts';
import { asError, CurlewError, errnoOf } from '../../core/errors.ts';
import { jsonIn } from '../../core/json.ts';
import {
  connectionMessage,
  isCertificateProblem,
  isNotTls,
  ProxyFailure,
  serverMessage,
} from '../../platform/http/failure.ts';
import { TooLong, type Answered } from './exchange.ts';
import { choosing, type KubeconfigWay } from './kubeconfig.ts';
import type { Session } from './session.ts';

/** Why a request failed; `unreachable` if it is unknown whether it was executed. */
export type ApiProblem = 'not found' | 'already exists' | 'conflict' | 'expired' | 'refused' | 'unreachable' | 'failed';

export interface ApiFailure {
  readonly kind: 'problem';
  readonly problem: ApiProblem;
  /** One line without secrets. */
  readonly message: string;
  /** The cure, if known. */
  readonly hint?: string | undefined;
  /** Status of the response. */
  readonly status?: number | undefined;
  /** Fields that other managers own, if that is the conflict. */
  readonly conflicts?: readonly FieldConflict[] | undefined;
  /** Mistakes in the fields of an object that is not valid. */
  readonly causes?: readonly FieldCause[] | undefined;
  /** The PodDisruptionBudget that does not allow an eviction, in the words of the server. */
  readonly budget?: string | undefined;
  /** The response is longer than one may be. */
  readonly isTooLong?: boolean;
}

export interface FieldCause {
  /** `spec.ports[0].nodePort` */
  readonly field: string;
  readonly message: string;
}

/** A field that a server-side apply would take from its manager. */
export interface FieldConflict {
  /** Path in the notation of managed fields: `.spec.template.spec.containers[name="web"].image`. */
  readonly field: string;
  readonly manager: string;
}

/** k8s.io/apimachinery/pkg/apis/meta/v1, StatusReason. */
const REASONS: Readonly<Record<string, ApiProblem>> = {
  NotFound: 'not found',
  AlreadyExists: 'already exists',
  Conflict: 'conflict',
  Expired: 'expired',
  Gone: 'expired',
  Unauthorized: 'refused',
  Forbidden: 'refused',
  Timeout: 'unreachable',
  ServerTimeout: 'unreachable',
  ServiceUnavailable: 'unreachable',
  TooManyRequests: 'unreachable',
  InternalError: 'unreachable',
  Invalid: 'failed',
};

/** Server-side apply of a field that the schema does not have, or has with another type: 500 without a reason. */
const WRONG_FIELD = /^failed to create typed (?:patch|live) object /;

/** The reason of a `Status`, or of its message if it has none: other errors without a reason may pass, as those of etcd. */
export function reasonOf({ reason, message }: { readonly reason?: unknown; readonly message?: unknown }): string {
  if (typeof reason === 'string' && reason !== '') return reason;
  return typeof message === 'string' && WRONG_FIELD.test(message) ? 'Invalid' : '';
}

/** By status, for responses that are not from an API server or have an unknown reason. */
const STATUSES: Readonly<Record<number, ApiProblem>> = {
  401: 'refused',
  403: 'refused',
  404: 'not found',
  408: 'unreachable',
  409: 'conflict',
  410: 'expired',
  429: 'unreachable',
};

function otherUser(way: KubeconfigWay): string {
  return `${choosing(way, 'the kubeconfig of an administrator')}, then run the same command again`;
}
const TERMINATING =
  'wait until the namespace is deleted (its conditions say what remains), create it again if need be, then run the same command again';
const CLOCK =
  'correct the clock of this machine or renew the certificates (kubeadm certs renew all), then run the same command again';

/** The problem of an error response. */
export function statusProblem(answer: Answered, session: Session): ApiFailure {
  const { status, body } = answer;
  const head = { status, headers: answer.headers, url: session.server.href };
  const { reason, conflicts, causes = [], budget, isTerminating = false } = readStatus(body);
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined;
  const problem = known ?? STATUSES[status] ?? (status >= 500 ? 'unreachable' : 'failed');
  // The whole message repeats values before it comes to the reason, and is cut.
  const shown = causes.slice(0, MAX_CAUSES);
  const brief = shown.map(({ field, message: why }) => `${field}: ${shortened(why, ALL_CAUSES / shown.length)}`);
  const more = causes.length > MAX_CAUSES ? `; ${causes.length - MAX_CAUSES} more` : '';
  const told = brief.length === 0 ? body : Buffer.from(JSON.stringify({ message: brief.join('; ') + more }));
  const own = serverMessage(head, told, session.secrets);
  const title = `${session.server.host} returned ${status}`;
  const details = [...new Set([reason, own])].filter((text) => text !== undefined && text !== '').join(': ');
  const message = visible(details === '' ? title : `${title} (${details})`);
  if (status >= 300 && status < 400)
    return { kind: 'problem', problem, message: `${message}, which is not followed`, status };
  const invalid = reason === 'Invalid' ? CORRECT : undefined;
  const hint = causes.some(({ message: why }) => IMMUTABLE.test(why)) ? REPLACE : invalid;
  if (problem !== 'refused') return { kind: 'problem', problem, message, hint, status, conflicts, causes, budget };
  const { certificateEndsAt } = session;
  // An API server reports an expired certificate only as an unknown user.
  if (status !== 401 || certificateEndsAt === undefined || certificateEndsAt > Date.now()) {
    return { kind: 'problem', problem, message, hint: isTerminating ? TERMINATING : otherUser(session.way), status };
  }
  const ended = `the client certificate of the kubeconfig expired at ${new Date(certificateEndsAt).toISOString()}`;
  return { kind: 'problem', problem, message: `${message}; ${ended}`, hint: CLOCK, status };
}

const statusSchema = v.object({
  kind: v.literal('Status'),
  reason: v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z]{0,60}$/)), ''),
  message: v.optional(v.unknown()),
  details: v.optional(v.object({ causes: v.optional(v.array(v.record(v.string(), v.unknown())), []) })),
});

/** `conflict with "kubectl-edit" using apps/v1 at 2026-01-01T00:00:00Z`, or without the name if there are several. */
const MANAGER = /^conflict with "((?:[^"\\]|\\.)*)"/;

interface ReadStatus extends Pick<ApiFailure, 'conflicts' | 'causes' | 'budget'> {
  readonly reason: string;
  readonly isTerminating?: boolean;
}

function readStatus(body: Buffer): ReadStatus {
  const read = v.safeParse(statusSchema, jsonIn(body.toString('utf8')));
  // The response is not from an API server.
  if (!read.success) return { reason: '' };
  const { details } = read.output;
  const reason = reasonOf(read.output);
  const conflicts = (details?.causes ?? []).flatMap(({ reason: why, field, message }): readonly FieldConflict[] => {
    if (why !== 'FieldManagerConflict' || typeof field !== 'string' || typeof message !== 'string') return [];
    return [{ field: visible(field), manager: visible(MANAGER.exec(message)?.[1] ?? 'another manager') }];
  });
  if (conflicts.length > 0) return { reason, conflicts };
  const causes = (details?.causes ?? []).flatMap(({ field, message }): readonly FieldCause[] => {
    return typeof field === 'string' && typeof message === 'string' ? [{ field, message }] : [];
  });
  const [budget] = (details?.causes ?? []).flatMap(({ reason: why, message }) => {
    return why === 'DisruptionBudget' && typeof message === 'string' ? [visible(message)] : [];
  });
  const isTerminating = (details?.causes ?? []).some((cause) => cause['reason'] === 'NamespaceTerminating');
  return { reason, causes, budget, isTerminating };
}

const MAX_CAUSES = 3;
/** Characters of the messages of all causes. */
const ALL_CAUSES = 240;

/** `Invalid value: VALUE: reason` without the middle of the value. */
function shortened(cause: string, most: number): string {
  if (cause.length <= most) return cause;
  const reason = cause.slice(cause.lastIndexOf(': '));
  return `${cause.slice(0, most / 4)}…${reason.slice((-3 * most) / 4)}`;
}

/** Messages about immutable fields; each kind of Kubernetes has its own wording. */
export const IMMUTABLE: RegExp =
  /\bimmutable\b|\bupdates to .*\bforbidden\b|\bmay not (?:be )?changed?\b|\bcannot change\b/i;
const CORRECT = 'correct the object, then run the same command again';
const REPLACE =
  'these fields cannot be changed: delete the object, which the next run creates again, or rename it in the manifest';

const AWAY =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EAI_AGAIN|E(?:HOST|NET)(?:UNREACH|DOWN)|CURLEW_\w+_TIMEOUT)$/;

/** Node's error codes for the validity period of a certificate. */
const TIMES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
};

/** The problem of a connection that failed or broke, or of an unusable kubeconfig. */
export function thrownProblem(thrown: unknown, session?: Session): ApiFailure {
  const error = asError(thrown);
  if (error instanceof CurlewError) {
    // The proxy is unreachable, or cannot reach the server.
    const problem = error instanceof ProxyFailure && error.isLater ? 'unreachable' : 'failed';
    return { kind: 'problem', problem, message: error.message, hint: error.hint, isTooLong: error instanceof TooLong };
  }
  const code = errnoOf(error) ?? '';
  const way = session?.way ?? 'KUBECONFIG';
  const host = session === undefined ? '' : `${session.server.host}: `;
  const problemOf = (problem: ApiProblem, what: string, hint?: string): ApiFailure => {
    return { kind: 'problem', problem, message: visible(`${host}${what}`), hint };
  };
  const time = TIMES[code];
  if (time !== undefined) return problemOf('refused', time, CLOCK);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return problemOf('refused', 'its certificate is for another name', 'use the address in the certificate as server');
  }
  if (isCertificateProblem(code)) {
    const hint = choosing(way, "a kubeconfig with this cluster's certificate authority");
    return problemOf('refused', `its certificate is not from the authority of the kubeconfig (${code})`, hint);
  }
  if (/_ALERT_/.test(code)) return problemOf('refused', `it ended the TLS handshake (${code})`, otherUser(way));
  // A name that the DNS does not have does not come back by itself, other than a resolver that does not answer.
  if (code === 'ENOTFOUND')
    return problemOf('failed', 'host not found', 'check the name in the kubeconfig, and the network');
  if (AWAY.test(code)) return problemOf('unreachable', connectionMessage(error) ?? `the connection was lost (${code})`);
  if (isNotTls(error, code)) return problemOf('failed', 'it does not speak TLS');
  return problemOf('failed', connectionMessage(error) ?? (error.message || code));
}
