/** Specs and facts for tests of host preflights. */
import { fits } from '../../src/core/schema.ts';
import type { Json } from '../../src/formats/yaml/yaml.ts';
import type { Host } from '../../src/runtime/preflight/host.ts';
import { COLLECTORS } from '../../src/runtime/preflight/checks.ts';
import type { Fact } from '../../src/runtime/preflight/facts.ts';
import { analyzeFacts, type PreflightResult } from '../../src/runtime/preflight/analyze.ts';
import { parsePreflight, type ParsedPreflight } from '../../src/runtime/preflight/parse-preflight.ts';
import { checkSettingsOf } from '../../src/runtime/preflight/check-settings.ts';
import { NO_INSTALLATION, templateData, type Situation } from '../../src/runtime/preflight/situation.ts';
import type { HostPreflight } from '../../src/runtime/preflight/spec.ts';

const HEAD = 'apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\nmetadata:\n  name: test\nspec:\n';

/** A whole spec around the lines of its `spec`. */
export function specText(body: string): string {
  return HEAD + body;
}

export function parse(body: string, situation: Situation = NO_INSTALLATION): ParsedPreflight {
  return parsePreflight('spec.yaml', specText(body), templateData(situation));
}

/** A spec without mistakes. */
export function preflightOf(body: string, situation: Situation = NO_INSTALLATION): HostPreflight {
  const { preflight, diagnostics } = parse(body, situation);
  if (preflight === undefined) throw new Error(JSON.stringify(diagnostics));
  return preflight;
}

/** One analyzer with these outcomes, each `verdict` or `verdict: condition`; its message is the verdict. */
export function judge(
  kind: string,
  data: Json,
  outcomes: readonly string[],
  settings = '',
): readonly PreflightResult[] {
  const rows = outcomes.map((outcome) => {
    const [verdict = '', ...when] = outcome.split(': ');
    const condition = when.length === 0 ? '' : `when: ${JSON.stringify(when.join(': '))}, `;
    return `          - ${verdict}: {${condition}message: ${verdict}}\n`;
  });
  const body = `  analyzers:\n    - ${kind}:\n${settings}        outcomes:\n${rows.join('')}`;
  const collector = kind === 'textAnalyze' ? 'run' : kind;
  const fact: Fact = {
    kind: collector,
    name: COLLECTORS.get(collector)?.defaultName ?? collector,
    ms: 1,
    status: 'collected',
    data,
  };
  return analyzeFacts([preflightOf(body)], [fact]);
}

/** Whether a condition holds; what cannot be judged is told as text. */
export function holds(kind: string, data: Json, when: string, settings = ''): boolean | string {
  const [result] = judge(kind, data, [`warn: ${when}`, 'pass'], settings);
  if (result?.verdict === 'fail') return result.message;
  return result?.verdict === 'warn';
}

/** What one collector finds. */
export async function collect(
  kind: string,
  settings: Readonly<Record<string, Json>>,
  host: Partial<Host> & { readonly signal: AbortSignal },
): Promise<Json> {
  const collector = COLLECTORS.get(kind);
  if (collector === undefined) throw new Error(`no collector ${kind}`);
  const facts = await collector.collect(checkSettingsOf(settings), { root: '/', env: {}, ...host });
  if (!fits(collector.facts, JSON.parse(JSON.stringify(facts))))
    throw new Error(`facts of another shape: ${JSON.stringify(facts)}`);
  return facts;
}
