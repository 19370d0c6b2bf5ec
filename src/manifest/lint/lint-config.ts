/**
 * `.curlew-lint.json` in the root of a repository: severities of rules, and where they do not apply. Errors in it become
 * findings.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import type { Diagnostic, Place } from '../../core/diagnostic.ts';
import { nearest } from '../../core/nearest.ts';
import { byKey, closed, textList } from '../../core/schema.ts';
import { readJsonFile, type ReportProblem } from '../../formats/yaml/document.ts';
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
const SEVERITIES = ['off', 'info', 'warning', 'error'] as const;
const SHELLCHECK = /^shellcheck\/SC\d{4}$/;

/** Whether a rule exists. Any rule id of shellcheck is accepted. */
export function isRule(id: string): boolean {
  return Object.hasOwn(RULES, id) || SHELLCHECK.test(id);
}

/** The finding for an unknown rule. */
export function unknownRule(id: string, place: Place): Diagnostic {
  const near = nearest(id, RULE_IDS);
  const hint = near === undefined ? 'curlew help manifest lists the rules' : `did you mean "${near}"?`;
  return finding('lint/unknown-rule', place, `unknown rule ${quoted(id)}`, hint);
}

const ignored = v.object({
  files: v.pipe(textList, v.nonEmpty('no pattern')),
  rules: v.optional(textList),
  reason: v.optional(v.string()),
});
const EXAMPLE = '"ignore": ["addons/old/**", { "files": ["…"], "rules": ["…"], "reason": "…" }]';
const schema = closed({
  $schema: v.optional(v.unknown()),
  rules: v.optional(byKey(v.picklist(SEVERITIES, `not a severity\none of ${SEVERITIES.join(', ')}`)), {}),
  ignore: v.optional(v.array(v.union([v.string(), ignored], `not a pattern or an object\n${EXAMPLE}`)), []),
});

/** `shown` is the root's path for messages, empty or with a trailing slash. */
export function readLintConfig(root: string, shown: string, find: Find): LintConfig | undefined {
  const file = `${shown}${LINT_CONFIG}`;
  const read = readTextFile(join(root, LINT_CONFIG), LIMIT);
  if (read.kind === 'absent') return undefined;
  const bad: ReportProblem = (place, message, hint) => find('lint/config', place, message, hint);
  if (read.kind !== 'text') {
    const what = read.kind === 'special' ? 'not a regular file' : `larger than ${LIMIT} bytes`;
    bad({ file, line: 1, column: 1, length: 1 }, what);
    return undefined;
  }
  const { value, placeOf } = readJsonFile(schema, { file, text: read.text }, bad);
  if (value === undefined) return undefined;
  const severities = new Map<string, RuleSeverity>();
  const places = new Map<string, Place>();
  for (const [id, severity] of Object.entries(value.rules)) {
    const place = placeOf(['rules', id]);
    const matching = id.endsWith('/*') ? RULE_IDS.filter((known) => known.startsWith(id.slice(0, -1))) : [id];
    if (matching.length === 0 || (!id.endsWith('/*') && !isRule(id))) find(unknownRule(id, place));
    for (const one of matching) {
      // A key for one rule takes precedence over a key for a group, regardless of order.
      if (id.endsWith('/*') && Object.hasOwn(value.rules, one)) continue;
      severities.set(one, severity);
      places.set(one, place);
    }
  }
  const ignores = value.ignore.map((item, at) => {
    const { files, rules } = typeof item === 'string' ? { files: [item], rules: undefined } : item;
    for (const [index, id] of (rules ?? []).entries()) {
      if (!isRule(id)) find(unknownRule(id, placeOf(['ignore', at, 'rules', index])));
    }
    return { files, rules: rules && new Set(rules), place: placeOf(['ignore', at, 'files', 0]) };
  });
  return { file, severities, places, ignores };
}
