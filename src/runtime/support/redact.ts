/** Removes secrets from what goes into a support bundle: known ones, and all that look like one. Pure. */
import { redact } from '../../core/errors.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import { hiding, REDACTED, type Secret, secretsIn } from '../../core/secret.ts';
import { isSecretName } from '../../spec/secret-settings.ts';
import { LAST_APPLIED } from '../../cluster/kube/config-map.ts';

/** Texts that are secret wherever they are. */
const FORMS: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  // The end of one, as at the beginning of a log that was shortened.
  /(?:[\w+/=]{16,}\s+)+-----END [A-Z ]*PRIVATE KEY-----/g,
  /\bAGE-SECRET-KEY-1[0-9A-Z]+/g,
  // A token of kubeadm.
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g,
  // A JSON web token, such as that of a service account.
  /\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]+)?/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\b(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-)[\w-]{16,}/g,
];
const LOGIN = /\b(Bearer|Basic|Token)([ \t]+)["']?[\w.~+/=-]{6,}/gi;
/** A name, and what separates it from its value; a backslash is before quotes of JSON in a text. */
const FIELD = /([A-Za-z][\w.-]{0,80})(\\*["']?[ \t]*(?::=|[:=])[ \t]*)(?=[^\s:=]|\n)/g;
const OPTION = /(?<![\w-])(--?([A-Za-z][\w-]{0,80})[ \t]+)(?!-)("[^"\n]*"|'[^'\n]*'|[^\s"']+)/g;
/** The value of a field: in quotes or brackets, or up to a space or a bracket. */
const VALUE = /(\\*")[^]{0,8192}?(?<!\\)\1|'[^'\n]*'|[[{][^\n]*?[\]}]|[^\s,;&)}\]"']+/y;
const LINE = /[^\n]*/y;
/** The text before the name of a variable or of a field of YAML, whose value ends with its line. */
const LINE_START = /(?:^|\n)[ \t]*(?:- |export |declare -x |\+ )*["']?$/;
const BLOCK = /^(?:[|>][+-]?\d*[ \t]*)?$/;

export interface Redactor {
  readonly text: (text: string) => string;
  /** A value of JSON, such as an object of Kubernetes. */
  readonly value: (value: unknown) => unknown;
}

export function redactor(known: readonly Secret[]): Redactor {
  const hide = hiding(known);
  const names = new Map<string, boolean>();
  const isSecret = (name: string): boolean => {
    const isKnown = names.get(name);
    if (isKnown !== undefined) return isKnown;
    const is = isSecretName(name) || /certificate.?key$/i.test(name);
    if (names.size < MAX_NAMES) names.set(name, is);
    return is;
  };
  const text = (all: string): string => {
    let shown = redact(hide(all));
    for (const form of FORMS) shown = shown.replaceAll(form, REDACTED);
    shown = shown.replaceAll(LOGIN, `$1$2${REDACTED}`);
    shown = shown.replaceAll(OPTION, (whole, before: string, name: string, value: string) => {
      const isLogin = /^(?:u|(?:proxy-)?user)$/.test(name) && value.includes(':');
      return isLogin || isSecret(name) ? before + REDACTED : whole;
    });
    return withoutFields(shown, isSecret);
  };
  return { text, value: (value) => withoutValues(value, { text, isSecret, depth: 0 }) };
}

const MAX_NAMES = 10_000;

/** Hides the values of fields with the name of a secret, in YAML, JSON, TOML, a shell or a log. */
function withoutFields(text: string, isSecret: (name: string) => boolean): string {
  const parts: string[] = [];
  let from = 0;
  FIELD.lastIndex = 0;
  for (let match = FIELD.exec(text); match !== null; match = FIELD.exec(text)) {
    const [, name = ''] = match;
    if (match.index < from || !isSecret(name)) continue;
    const at = FIELD.lastIndex;
    const end = endOfValue(text, match.index, at);
    if (end > at) parts.push(text.slice(from, at), text[at] === '\n' ? ` ${REDACTED}` : REDACTED);
    else parts.push(text.slice(from, at));
    FIELD.lastIndex = from = end;
  }
  return parts.length === 0 ? text : parts.join('') + text.slice(from);
}

function endOfValue(text: string, nameAt: number, at: number): number {
  const isWholeLine = LINE_START.test(text.slice(Math.max(0, nameAt - 200), nameAt));
  const isQuoted = /^(?:\\*"|')/.test(text.slice(at, at + 8));
  const matching = (pattern: RegExp, from: number): number => {
    pattern.lastIndex = from;
    return from + (pattern.exec(text)?.[0].length ?? 0);
  };
  const end = matching(isWholeLine && !isQuoted ? LINE : VALUE, at);
  // Such as a quote that is not closed.
  if (end === at && text[at] !== '\n') return matching(LINE, at);
  if (!isWholeLine || !BLOCK.test(text.slice(at, end))) return end;
  // A block of YAML: all lines that are deeper than its name, and items of a list.
  const depth = Math.min(/[^\n]*$/.exec(text.slice(Math.max(0, nameAt - 200), nameAt))?.[0].length ?? 0, 200);
  const line = String.raw`[ \t]{${depth + 1},}[^\n]*|[ \t]{${depth}}- [^\n]*|[ \t]*(?=\n)`;
  return matching(new RegExp(String.raw`(?:\n(?:${line}))*`, 'y'), end);
}

const MAX_DEPTH = 64;

interface Rules {
  readonly text: Redactor['text'];
  readonly isSecret: (name: string) => boolean;
  readonly depth: number;
}

function withoutValues(value: unknown, rules: Rules): unknown {
  if (typeof value === 'string') return rules.text(value);
  if (typeof value !== 'object' || value === null) return value;
  if (rules.depth > MAX_DEPTH) return REDACTED;
  const deeper = { ...rules, depth: rules.depth + 1 };
  if (Array.isArray(value)) {
    const items = value as readonly unknown[];
    return items.map((one, at) => {
      const [, option = ''] = /^--?([A-Za-z][\w-]{0,80})$/.exec(String(items[at - 1])) ?? [];
      return typeof one === 'string' && rules.isSecret(option) ? REDACTED : withoutValues(one, deeper);
    });
  }
  const map = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(map).map(([name, one]) => {
      const isHidden = (typeof one === 'string' && one !== '') || typeof one === 'number';
      return [rules.text(name), isHidden && rules.isSecret(name) ? REDACTED : withoutValues(one, deeper)];
    }),
  );
}

/** Variables such as `DB_PASSWORD`, and the user info of URLs in any, such as that of a proxy. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>>): readonly Secret[] {
  return Object.entries(env).flatMap(([name, text = '']) => {
    const users = [...text.matchAll(/:\/\/([^\s/?#@]*)@/g)].flatMap(([, user = '']) => [
      user,
      ...user.split(':').slice(1),
    ]);
    return [...(isSecretName(name) ? secretsIn(text) : []), ...users.flatMap(secretsIn)];
  });
}

const LEFT_OUT = '[left out]';

/** An object of Kubernetes without the values of Secrets, of ConfigMaps and of variables of containers. */
export function plainObject(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { metadata, ...rest } = object;
  const { managedFields: _, annotations, ...others } = fieldsOf(metadata);
  const { [LAST_APPLIED]: __, ...kept } = fieldsOf(annotations);
  const plain = { ...rest, metadata: { ...others, ...(Object.keys(kept).length > 0 && { annotations: kept }) } };
  const isValues = ['Secret', 'ConfigMap'].includes(String(object['kind']));
  return Object.fromEntries(
    Object.entries(plain).map(([name, value]) => {
      const isData = isValues && ['data', 'stringData', 'binaryData'].includes(name) && isObject(value);
      return [name, isData ? Object.fromEntries(Object.keys(value).map((key) => [key, LEFT_OUT])) : withoutEnv(value)];
    }),
  );
}

function withoutEnv(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEnv);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      if (name !== 'env' || !Array.isArray(one)) return [name, withoutEnv(one)];
      const variables = (one as readonly unknown[]).map((variable) =>
        isObject(variable) && variable['value'] !== undefined ? { ...variable, value: LEFT_OUT } : variable,
      );
      return [name, variables];
    }),
  );
}
