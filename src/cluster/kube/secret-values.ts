/** Keeps values of Secrets out of messages: servers and programs quote what they refuse. Pure. */
import { isObject, jsonIn } from '../../core/json.ts';
import type { ApiPath } from './path.ts';
import { IMMUTABLE, reasonOf } from './problem.ts';

const HIDDEN = 'values of Secrets are not shown';
/** Where a text begins to be about a Secret, in the messages of API servers and of helm. */
const ABOUT_SECRET = /\bKind=Secret\b|\bkind: Secret\b|\bSecret in version\b|\bSecret "/;
/** The only part of such a message that is certain to have no value: a key, and the type that it must have. */
const FIELD = /\.(?:data|stringData)(?:\.[-._A-Za-z0-9]+)?: expected [a-z]+/g;

/** The request writes a Secret, so that the error response may quote it. */
export function writesSecret({
  verb,
  path,
  document,
}: {
  readonly verb: string;
  readonly path: ApiPath;
  readonly document?: unknown;
}): boolean {
  const isWrite = document !== undefined && verb !== 'delete';
  return isWrite && /^\/api\/v1\/(?:namespaces\/[^/]+\/)?secrets(?:[/?]|$)/.test(path);
}

/** A `Status` about a Secret, with only the reason, the fields, and the managers that it conflicts with. */
export function statusWithoutValues(body: Buffer): Buffer {
  const status = jsonIn(body.toString('utf8'));
  // Not from an API server: reported by its status.
  if (!isObject(status)) return Buffer.alloc(0);
  const { kind, message, details } = status;
  const listed = isObject(details) && Array.isArray(details['causes']) ? (details['causes'] as readonly unknown[]) : [];
  const named = listed.filter(isObject);
  const causes = named.flatMap(({ reason: why, field, message: text }) => {
    const message =
      why === 'FieldManagerConflict' ? text : IMMUTABLE.test(String(text)) ? 'field is immutable' : undefined;
    return message === undefined ? [] : [{ reason: why, field, message }];
  });
  const fields = named.flatMap(({ field }) => (typeof field === 'string' ? [field] : []));
  const shown = [...new Set([...fields, ...fieldsIn(String(message))])];
  const reason = reasonOf(status);
  return Buffer.from(JSON.stringify({ kind, reason, message: [...shown, HIDDEN].join('; '), details: { causes } }));
}

/** A message of another program, cut where it begins to be about a Secret. */
export function withoutSecretValues(text: string): string {
  const match = ABOUT_SECRET.exec(text);
  if (match === null) return text;
  return [text.slice(0, match.index + match[0].length), ...fieldsIn(text), HIDDEN].join('; ');
}

function fieldsIn(text: string): readonly string[] {
  return [...text.matchAll(FIELD)].map(([field]) => field);
}
