/** Parses HostPreflight specs: template, YAML, data. Pure; returns all findings of a spec and throws none. */
import { compareDiagnostics, hasErrors, type Diagnostic } from '../../core/diagnostic.ts';
import { nearest } from '../../core/nearest.ts';
import { isJsonObject, readYaml, splitYaml, type Json, type JsonObject, type Path } from '../../formats/yaml/yaml.ts';
import { ANALYZERS, COLLECTORS } from './checks.ts';
import { parseTruth } from './go-notation.ts';
import { settingProblem, checkSettingsOf, type SettingForms } from './check-settings.ts';
import type { AnalyzerSpec, CollectorSpec, HostPreflight, OutcomeRule, Verdict } from './spec.ts';
import { KURL_DELIMITERS, renderTemplate } from '../../formats/go-template/render.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';

/** A spec of kind SupportBundle, whose parts about the cluster have the same form. */
export interface SupportSpec {
  readonly host: HostPreflight;
  readonly cluster: HostPreflight;
}

export interface ParsedSupportSpecs {
  readonly specs: readonly SupportSpec[];
  /** Without parts that are not valid. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Where Troubleshoot's own programs find a spec in a Secret or a ConfigMap. */
const SUPPORT_BUNDLE_SPEC = 'support-bundle-spec';

/** All specs of kind SupportBundle in a file, also those in the text of a Secret or a ConfigMap. Collectors and analyzers may be unknown. */
export function parseSupportSpecs(file: string, text: string): ParsedSupportSpecs {
  const specs: SupportSpec[] = [];
  const diagnostics: Diagnostic[] = [];
  const read = (part: string, line: number): void => {
    const yaml = readYaml(file, part, { firstLine: line });
    diagnostics.push(...yaml.diagnostics);
    const { value } = yaml;
    if (!isJsonObject(value)) return;
    const { kind, stringData, data } = value;
    for (const values of [stringData, kind === 'ConfigMap' ? data : undefined]) {
      const nested = isJsonObject(values) ? values[SUPPORT_BUNDLE_SPEC] : undefined;
      if (typeof nested === 'string') for (const one of splitYaml(nested)) read(one.text, one.line);
    }
    if (kind !== 'SupportBundle') return;
    const add: Add = (severity, code, path, message, hint) => {
      diagnostics.push({ code: `troubleshoot/${code}`, severity, message, place: yaml.placeOf(path), hint });
    };
    const findings = { add, placeOf: yaml.placeOf, isOpen: true };
    const host = readSpec(value, ['hostCollectors', 'hostAnalyzers'], findings);
    const cluster = readSpec(value, ['collectors', 'analyzers'], findings);
    if (host !== undefined && cluster !== undefined) specs.push({ host, cluster });
  };
  for (const part of splitYaml(text)) read(part.text, part.line);
  return { specs, diagnostics };
}

export interface ParsedPreflight {
  /** Undefined if the findings contain an error. */
  readonly preflight: HostPreflight | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

type Add = (severity: Diagnostic['severity'], code: string, path: Path, message: string, hint?: string) => void;

interface Findings {
  readonly add: Add;
  readonly placeOf: (path: Path) => Diagnostic['place'];
  /** Collectors, analyzers and settings may be unknown. */
  readonly isOpen?: boolean;
}

const API_VERSION = 'troubleshoot.sh/v1beta2';
const VERDICTS: readonly Verdict[] = ['pass', 'warn', 'fail'];
const MAX_ITEMS = 1000;

/** Parses one spec; `file` is its name for messages, `data` the values for its `{{kurl …}}`. */
export function parsePreflight(file: string, text: string, data: ValueMap): ParsedPreflight {
  const rendered = renderTemplate(text, data, { file, ...KURL_DELIMITERS });
  if (rendered.text === undefined) return { preflight: undefined, diagnostics: rendered.diagnostics };
  const yaml = readYaml(file, rendered.text);
  const diagnostics = yaml.diagnostics.map((one) => ({ ...one, place: rendered.placeOf(one.place) }));
  const placeOf = (path: Path): Diagnostic['place'] => rendered.placeOf(yaml.placeOf(path));
  const add: Add = (severity, code, path, message, hint) => {
    diagnostics.push({ code: `preflight/${code}`, severity, message, place: placeOf(path), hint });
  };
  const preflight = hasErrors(diagnostics) ? undefined : readDocument(yaml.value, { add, placeOf });
  return {
    preflight: hasErrors(diagnostics) ? undefined : preflight,
    diagnostics: diagnostics.toSorted(compareDiagnostics),
  };
}

function readDocument(value: Json | undefined, findings: Findings): HostPreflight | undefined {
  if (!isJsonObject(value)) {
    findings.add('error', 'document', [], 'not a HostPreflight: it must be a map with apiVersion, kind and spec');
    return undefined;
  }
  const { apiVersion, kind } = value;
  if (apiVersion !== API_VERSION) findings.add('error', 'schema', ['apiVersion'], `apiVersion must be ${API_VERSION}`);
  if (kind !== 'HostPreflight') findings.add('error', 'schema', ['kind'], 'kind must be HostPreflight');
  return readSpec(value, ['collectors', 'analyzers'], findings);
}

/** Collectors and analyzers are below these names. */
function readSpec(
  { metadata, spec = {} }: JsonObject,
  [collectors, analyzers]: readonly [string, string],
  findings: Findings,
): HostPreflight | undefined {
  if (!isJsonObject(spec)) {
    findings.add('error', 'schema', ['spec'], `spec must be a map with ${collectors} and ${analyzers}`);
    return undefined;
  }
  for (const key of Object.keys(spec)) {
    if (findings.isOpen === true || [collectors, analyzers, 'uri'].includes(key)) continue;
    findings.add('warning', 'unknown', ['spec', key], `"${key}" is not supported and is ignored`);
  }
  const name = isJsonObject(metadata) ? metadata['name'] : undefined;
  return {
    name: typeof name === 'string' ? name : undefined,
    collectors: itemsOf(spec, collectors, findings).flatMap((item) => readCollector(item, findings) ?? []),
    analyzers: itemsOf(spec, analyzers, findings).flatMap((item) => readAnalyzer(item, findings) ?? []),
  };
}

interface Item {
  readonly kind: string;
  readonly content: JsonObject;
  readonly path: Path;
}

/** A list whose items have one key each, their kind. */
function itemsOf(spec: JsonObject, name: string, { add }: Findings): readonly Item[] {
  const list = spec[name] ?? [];
  const path = ['spec', name];
  if (!Array.isArray(list)) {
    add('error', 'schema', path, `${name} must be a list`);
    return [];
  }
  if (list.length > MAX_ITEMS) {
    add('error', 'schema', path, `more than ${MAX_ITEMS} ${name}`);
    return [];
  }
  return (list as readonly Json[]).flatMap((item, at) => {
    const here = [...path, at];
    const entries = isJsonObject(item) ? Object.entries(item) : [];
    const [first, second] = entries;
    if (first === undefined || second !== undefined) {
      add(
        'error',
        'schema',
        second === undefined ? here : [...here, second[0]],
        'an item of this list has one key, and settings below it',
        'such as "- cpu: {}"',
      );
      return [];
    }
    const [kind, content] = first;
    if (isJsonObject(content)) return [{ kind, content, path: [...here, kind] }];
    add('error', 'schema', [...here, kind], `${kind} must be a map`, `write "${kind}: {}"`);
    return [];
  });
}

function readCollector({ kind, content, path }: Item, findings: Findings): CollectorSpec | undefined {
  const collector = COLLECTORS.get(kind);
  if (collector === undefined && findings.isOpen !== true) {
    const near = nearest(kind, [...COLLECTORS.keys()]);
    const hint = near === undefined ? undefined : `did you mean ${near}?`;
    findings.add('warning', 'unknown', path, `unknown collector "${kind}": nothing is collected`, hint);
    return undefined;
  }
  const common: SettingForms = { collectorName: 'text' };
  const others = ['exclude', ...(collector === undefined ? Object.keys(content) : [])];
  const settings = checkSettings(content, { ...common, ...collector?.settings }, others, path, findings);
  return {
    kind,
    name: settings.text('collectorName'),
    excluded: readTruth(content, 'exclude', path, findings),
    settings,
    place: findings.placeOf(path),
  };
}

function readAnalyzer({ kind, content, path }: Item, findings: Findings): AnalyzerSpec | undefined {
  const analyzer = ANALYZERS.get(kind);
  if (analyzer === undefined && findings.isOpen !== true) {
    const near = nearest(kind, [...ANALYZERS.keys()]);
    const hint = near === undefined ? undefined : `did you mean ${near}?`;
    findings.add('warning', 'unknown', path, `unknown analyzer "${kind}": it fails`, hint);
  }
  const common: SettingForms = { collectorName: 'text', checkName: 'text', annotations: 'map' };
  const others = ['exclude', 'strict', 'outcomes', ...(analyzer === undefined ? Object.keys(content) : [])];
  const settings = checkSettings(content, { ...common, ...analyzer?.analyzerSettings }, others, path, findings);
  return {
    kind,
    checkName: settings.text('checkName'),
    collectorName: settings.text('collectorName'),
    excluded: readTruth(content, 'exclude', path, findings),
    strict: readTruth(content, 'strict', path, findings),
    outcomes: readOutcomes(content['outcomes'], [...path, 'outcomes'], findings),
    settings,
    place: findings.placeOf(path),
  };
}

function checkSettings(
  content: JsonObject,
  forms: SettingForms,
  others: readonly string[],
  path: Path,
  { add }: Findings,
): CollectorSpec['settings'] {
  for (const [name, value] of Object.entries(content)) {
    const form = Object.hasOwn(forms, name) ? forms[name] : undefined;
    if (form === undefined) {
      if (others.includes(name)) continue;
      const near = nearest(name, [...Object.keys(forms), ...others]);
      const hint = near === undefined ? undefined : `did you mean ${near}?`;
      add('warning', 'unknown', [...path, name], `${String(path.at(-1))} has no setting "${name}"`, hint);
      continue;
    }
    const problem = settingProblem(form, value);
    if (problem !== undefined) add('error', 'schema', [...path, name], `"${name}" ${problem}`);
  }
  for (const [name, form] of Object.entries(forms)) {
    if (form.endsWith('!') && content[name] === undefined) {
      add('error', 'schema', path, `${String(path.at(-1))} needs "${name}"`);
    }
  }
  return checkSettingsOf(content);
}

/** A boolean or its text form, since templates produce text; empty text is false. */
function readTruth(content: JsonObject, name: string, path: Path, { add }: Findings): boolean {
  const value = content[name];
  if (value === undefined || value === '') return false;
  if (typeof value === 'boolean') return value;
  const truth = typeof value === 'string' || typeof value === 'number' ? parseTruth(String(value)) : undefined;
  if (truth === undefined)
    add('warning', 'schema', [...path, name], `"${name}" is neither true nor false: false is assumed`);
  return truth ?? false;
}

function readOutcomes(value: Json | undefined, path: Path, findings: Findings): readonly OutcomeRule[] {
  if (value === undefined || !Array.isArray(value)) {
    findings.add('error', 'schema', path, 'outcomes must be a list of pass, warn and fail');
    return [];
  }
  return (value as readonly Json[]).flatMap((item, at) => {
    const here = [...path, at];
    const entries = isJsonObject(item) ? Object.entries(item) : [];
    const verdict = VERDICTS.find((one) => one === entries[0]?.[0]);
    const content = entries[0]?.[1];
    if (verdict === undefined || entries.length > 1 || !isJsonObject(content)) {
      const spot = entries[0] === undefined ? here : [...here, entries[0][0]];
      findings.add('error', 'schema', spot, 'an outcome is one of pass, warn and fail, with when and message below it');
      return [];
    }
    const forms: SettingForms = { when: 'text', message: 'text', uri: 'text' };
    const settings = checkSettings(content, forms, [], [...here, verdict], findings);
    return [
      {
        verdict,
        when: settings.text('when') ?? '',
        message: settings.text('message') ?? '',
        uri: settings.text('uri'),
        place: findings.placeOf(content['when'] === undefined ? [...here, verdict] : [...here, verdict, 'when']),
      },
    ];
  });
}
