/**
 * `.curlew-lint.json` in the root of a repository: severities of rules, and where they do not apply. Errors in it become
 * findings.
 */
import { join } from 'node:path';
import type { Diagnostic, Place } from '../../core/diagnostic.ts';
import { asError } from '../../core/errors.ts';
import { isObject, isTexts, shallowJson } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { finding, quoted, RULE_IDS, RULES, type Find, type RuleSeverity } from '../rules.ts';
import { readTextFile } from '../text-file.ts';

const LINT_CONFIG = '.curlew-lint.json';

export interface ConfigIgnore {
  readonly files: readonly string[];
  /** Undefined for all rules. */
  readonly rules: ReadonlySet<string> | undefined;
  readonly place: Place;
}

export interface LintConfig {
  /** For messages. */
  readonly file: string;
  readonly severities: ReadonlyMap<string, RuleSeverity>;
  readonly ignores: readonly ConfigIgnore[];
  /** Places of the keys under `rules`. */
  readonly places: ReadonlyMap<string, Place>;
}

const LIMIT = 256 * 1024;
const SEVERITIES: readonly RuleSeverity[] = ['off', 'info', 'warning', 'error'];
const SHELLCHECK = /^shellcheck\/SC\d{4}$/;

/** Whether a rule exists. Any rule id of shellcheck is accepted. */
export function isRule(id: string): boolean {
  return Object.hasOwn(RULES, id) || SHELLCHECK.test(id);
}

/** The finding for an unknown rule. */
export function unknownRule(id: string, place: Place): Diagnostic {
  const near = nearest(id, RULE_IDS);
  const hint = near === undefined ? 'docs/manifest.md lists the rules' : `did you mean "${near}"?`;
  return finding('lint/unknown-rule', place, `unknown rule ${quoted(id)}`, hint);
}

/** `shown` is the root's path for messages, empty or with a trailing slash. */
export function readLintConfig(root: string, shown: string, find: Find): LintConfig | undefined {
  const file = `${shown}${LINT_CONFIG}`;
  const read = readTextFile(join(root, LINT_CONFIG), LIMIT);
  if (read.kind === 'absent') return undefined;
  const bad = (what: string, place: Place = { file, line: 1, column: 1, length: 1 }, hint?: string): undefined => {
    find(finding('lint/config', place, what, hint));
    return undefined;
  };
  if (read.kind !== 'text') return bad(read.kind === 'special' ? 'not a regular file' : `larger than ${LIMIT} bytes`);
  const { text } = read;
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch (error) {
    return bad(`not JSON: ${asError(error).message.slice(0, 200)}`);
  }
  if (!isObject(value)) return bad('not an object');
  const unknown = Object.keys(value).find((key) => key !== 'rules' && key !== 'ignore' && key !== '$schema');
  if (unknown !== undefined)
    return bad(`unknown key ${quoted(unknown)}`, placeOf(file, text, unknown), 'known: rules, ignore');
  const rules = readRules(value['rules'] ?? {}, file, text, find);
  const ignores = readIgnores(value['ignore'] ?? [], file, text, find);
  return rules === undefined || ignores === undefined ? undefined : { file, ...rules, ignores };
}

/** The first place of a quoted word: exact enough for a small file. */
function placeOf(file: string, text: string, word: string, after = 0): Place {
  const written = JSON.stringify(word);
  const at = Math.max(0, text.indexOf(written, after));
  const before = text.slice(0, at);
  return { file, line: before.split('\n').length, column: at - before.lastIndexOf('\n'), length: written.length };
}

function readRules(
  value: unknown,
  file: string,
  text: string,
  find: Find,
): Pick<LintConfig, 'severities' | 'places'> | undefined {
  const start = Math.max(0, text.indexOf('"rules"'));
  const severities = new Map<string, RuleSeverity>();
  const places = new Map<string, Place>();
  if (!isObject(value)) {
    find(finding('lint/config', placeOf(file, text, 'rules'), 'rules is not an object'));
    return undefined;
  }
  for (const [id, configured] of Object.entries(value)) {
    const place = placeOf(file, text, id, start);
    const severity = SEVERITIES.find((known) => known === configured);
    if (severity === undefined) {
      find(finding('lint/config', place, `${quoted(id)} has no valid severity`, `one of ${SEVERITIES.join(', ')}`));
      return undefined;
    }
    const matching = id.endsWith('/*') ? RULE_IDS.filter((known) => known.startsWith(id.slice(0, -1))) : [id];
    if (matching.length === 0 || (!id.endsWith('/*') && !isRule(id))) find(unknownRule(id, place));
    for (const one of matching) {
      // A key for one rule takes precedence over a key for a group, regardless of order.
      if (id.endsWith('/*') && Object.hasOwn(value, one)) continue;
      severities.set(one, severity);
      places.set(one, place);
    }
  }
  return { severities, places };
}

function readIgnores(value: unknown, file: string, text: string, find: Find): readonly ConfigIgnore[] | undefined {
  const start = Math.max(0, text.indexOf('"ignore"'));
  const ignores: ConfigIgnore[] = [];
  const items = Array.isArray(value) ? (value as readonly unknown[]) : [undefined];
  for (const item of items) {
    const whole = typeof item === 'string' ? { files: [item] } : item;
    const { files, rules, reason } = isObject(whole) ? whole : {};
    const fits = isTexts(files) && files.length > 0 && (rules === undefined || isTexts(rules));
    const place = placeOf(file, text, isTexts(files) ? (files[0] ?? 'ignore') : 'ignore', start);
    if (!fits || (reason !== undefined && typeof reason !== 'string')) {
      const hint = '"ignore": ["addons/old/**", { "files": ["…"], "rules": ["…"], "reason": "…" }]';
      find(finding('lint/config', place, 'ignore is not a list of patterns and objects', hint));
      return undefined;
    }
    for (const id of rules ?? []) if (!isRule(id)) find(unknownRule(id, placeOf(file, text, id, start)));
    ignores.push({ files, rules: rules === undefined ? undefined : new Set(rules), place });
  }
  return ignores;
}
