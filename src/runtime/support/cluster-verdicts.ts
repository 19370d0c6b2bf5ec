/** Evaluates the cluster analyzers of Troubleshoot's specs over objects of a cluster. Pure. */
import { healthOf } from '../../cluster/channel/health.ts';
import type { LiveObject } from '../../cluster/kube/objects.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import { satisfiesConstraint } from '../../formats/go-template/constraint.ts';
import { UnfitValue } from '../../formats/go-template/values.ts';
import { parseQuantity } from '../preflight/go-notation.ts';
import {
  AnalyzerProblem,
  compareNumbers,
  firstOutcome,
  messageOf,
  quantityOf,
  resultOf,
  wholeNumber,
  type AnalyzerResult,
} from '../preflight/outcome.ts';
import type { AnalyzerSpec, HostPreflight } from '../preflight/spec.ts';
import type { ClusterFacts } from './cluster-items.ts';
import type { Verdicts } from './support-index.ts';

type Objects = readonly LiveObject[];
type Judge = (spec: AnalyzerSpec, objects: Objects, facts: ClusterFacts) => readonly AnalyzerResult[];

interface Analyzer {
  /** What it needs a list of. */
  readonly of?: string;
  readonly title: (settings: AnalyzerSpec['settings']) => string;
  readonly judge: Judge;
}

function analyzer(title: string, name: string, of: string | undefined, judge: Judge): Analyzer {
  return {
    ...(of !== undefined && { of }),
    title: (settings) => [title, settings.text(name) ?? ''].join(' ').trim(),
    judge,
  };
}

const ANALYZERS: Readonly<Record<string, Analyzer>> = {
  clusterVersion: analyzer('Required Kubernetes Version', '', undefined, (spec, _, { version }) => {
    if (version === undefined) throw new AnalyzerProblem('the version of the cluster is not known');
    return firstOutcome<undefined>((when) => satisfiesConstraint(when, version.replace(/^v/, '')))(undefined, spec);
  }),
  nodeResources: analyzer('Node Resources', '', 'Node', judgeNodes),
  containerRuntime: analyzer('Container Runtime', '', 'Node', (spec, nodes) =>
    firstOutcome<undefined>((when) => {
      const [sign, wanted] = signedText(when);
      const runtimes = nodes.map((node) => {
        const { containerRuntimeVersion } = fieldsOf(fieldsOf(node['status'])['nodeInfo']);
        return String(containerRuntimeVersion).replace(/:.*$/, '');
      });
      return sign === '==' ? runtimes.includes(wanted) : !runtimes.includes(wanted);
    })(undefined, spec),
  ),
  deploymentStatus: workload('Deployment', 'readyReplicas'),
  statefulsetStatus: workload('StatefulSet', 'readyReplicas'),
  replicasetStatus: workload('ReplicaSet', 'readyReplicas'),
  jobStatus: workload('Job', 'succeeded'),
  clusterPodStatuses: analyzer('Pods', '', 'Pod', judgePods),
  storageClass: analyzer('Storage class', 'storageClassName', 'StorageClass', (spec, classes) => {
    const name = spec.settings.text('storageClassName');
    const isDefault = ({ metadata }: LiveObject): boolean =>
      metadata.annotations['storageclass.kubernetes.io/is-default-class'] === 'true';
    return presence(spec, name === undefined ? classes.some(isDefault) : named(classes, name) !== undefined);
  }),
  customResourceDefinition: existing(
    'Custom resource definition',
    'customResourceDefinitionName',
    'CustomResourceDefinition',
  ),
  secret: existing('Secret', 'secretName', 'Secret'),
  configMap: existing('ConfigMap', 'configMapName', 'ConfigMap'),
  ingress: existing('Ingress', 'ingressName', 'Ingress'),
};

/** What says nothing about the cluster, because this version does not know it or its objects are missing, is not evaluated. */
export function clusterVerdicts(specs: readonly HostPreflight[], facts: ClusterFacts): Verdicts {
  const results: Verdicts['results'][number][] = [];
  const notEvaluated: Verdicts['notEvaluated'][number][] = [];
  for (const { name: spec = '', analyzers } of specs) {
    for (const one of analyzers.filter(({ excluded }) => !excluded)) {
      const known = Object.hasOwn(ANALYZERS, one.kind) ? ANALYZERS[one.kind] : undefined;
      const title = one.checkName ?? known?.title(one.settings) ?? one.kind;
      const objects = known?.of === undefined ? [] : facts.objects.get(known.of);
      try {
        if (known === undefined) throw new AnalyzerProblem(`the analyzer ${one.kind} is not known to this version`);
        if (facts.problem !== undefined) throw new AnalyzerProblem(facts.problem);
        if (objects === undefined) throw new AnalyzerProblem(`objects of the kind ${known.of} were not collected`);
        for (const { uri, ...result } of known.judge(one, objects, facts))
          results.push({ ...result, ...(uri !== undefined && { uri }), title, strict: one.strict, spec });
      } catch (error) {
        if (!(error instanceof AnalyzerProblem || error instanceof UnfitValue)) throw error;
        notEvaluated.push({ title, spec, reason: error.message });
      }
    }
  }
  return { results, notEvaluated };
}

function named(objects: Objects, name: string, namespace?: string): LiveObject | undefined {
  return objects.find(({ metadata }) => {
    return metadata.name === name && (namespace === undefined || metadata.namespace === namespace);
  });
}

/** The outcome that passes if it is there, else the one that fails; conditions have no meaning. */
function presence({ outcomes }: AnalyzerSpec, isThere: boolean): readonly AnalyzerResult[] {
  const outcome = outcomes.find(({ verdict }) => (verdict === 'pass') === isThere);
  if (outcome !== undefined) return [resultOf(outcome)];
  return [{ verdict: isThere ? 'pass' : 'fail', message: isThere ? 'it exists' : 'it does not exist', uri: undefined }];
}

function existing(title: string, setting: string, kind: string): Analyzer {
  return analyzer(title, setting, kind, (spec, objects) => {
    const { settings } = spec;
    const found = named(objects, settings.text(setting) ?? '', settings.text('namespace'));
    const key = settings.text('key');
    const data = found?.['data'];
    return presence(spec, found !== undefined && (key === undefined || (isObject(data) && Object.hasOwn(data, key))));
  });
}

/** Conditions compare the number of ready replicas: `< 1`; `absent` is true without the object. */
function workload(kind: string, field: string): Analyzer {
  return analyzer(`${kind} status of`, 'name', kind, (spec, objects) => {
    const name = spec.settings.text('name');
    if (name === undefined) throw new AnalyzerProblem('it has no name: several objects are not known to this version');
    const found = named(objects, name, spec.settings.text('namespace') ?? 'default');
    if (found === undefined) {
      const absent = spec.outcomes.find(({ when }) => when === 'absent');
      if (absent !== undefined) return [resultOf(absent)];
      return [{ verdict: 'fail', message: `the ${kind} "${name}" was not found`, uri: undefined }];
    }
    const count = fieldsOf(found['status'])[field];
    return firstOutcome<number>((when, ready) => {
      const [sign, wanted] = signedText(when);
      return when !== 'absent' && compareNumbers(sign, ready, wholeNumber(wanted), true);
    })(typeof count === 'number' ? count : 0, spec);
  });
}

/** `== containerd`; a missing sign compares for equality. */
function signedText(when: string): readonly [sign: string, wanted: string] {
  const [, sign = '', wanted = ''] = /^\s*([=!<>]*)\s*(\S+)\s*$/.exec(when) ?? [];
  if (wanted === '') throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} is not a comparison`);
  return [sign.replace(/^(={1,3})?$/, '==').replace(/^!=+$/, '!='), wanted];
}

/** Each pod gives the first outcome that holds for it. */
function judgePods({ outcomes, settings }: AnalyzerSpec, pods: Objects): readonly AnalyzerResult[] {
  const namespaces = settings.texts('namespaces') ?? [];
  const own = pods.filter(({ metadata }) => namespaces.length === 0 || namespaces.includes(metadata.namespace ?? ''));
  const results = own.flatMap((pod): readonly AnalyzerResult[] => {
    const { state, reason } = healthOf({ ...pod, kind: 'Pod' });
    const { phase } = fieldsOf(pod['status']);
    const words = new Set([String(phase), ...reason.split(/[\s:,]+/)]);
    const outcome = outcomes.find(({ when }) => {
      if (when === '') return true;
      const [sign, wanted] = signedText(when);
      const holds = wanted === 'Healthy' ? state === 'healthy' : words.has(wanted);
      return sign === '==' ? holds : !holds;
    });
    if (outcome === undefined) return [];
    const { namespace = '', name } = pod.metadata;
    const data = {
      Namespace: namespace,
      Name: name,
      Status: { Phase: String(phase), Reason: reason, Message: reason },
    };
    return [{ ...resultOf(outcome), message: messageOf(outcome.message, data) }];
  });
  const message = 'none of its outcomes holds for a pod';
  return results.length > 0 ? results : [{ verdict: 'pass', message, uri: undefined }];
}

const AMOUNTS: Readonly<Record<string, readonly [list: 'capacity' | 'allocatable', resource: string]>> = {
  cpuCapacity: ['capacity', 'cpu'],
  cpuAllocatable: ['allocatable', 'cpu'],
  memoryCapacity: ['capacity', 'memory'],
  memoryAllocatable: ['allocatable', 'memory'],
  podCapacity: ['capacity', 'pods'],
  podAllocatable: ['allocatable', 'pods'],
  ephemeralStorageCapacity: ['capacity', 'ephemeral-storage'],
  ephemeralStorageAllocatable: ['allocatable', 'ephemeral-storage'],
};

function amountOf(node: LiveObject, property: string): number {
  const [list, resource] = Object.hasOwn(AMOUNTS, property) ? (AMOUNTS[property] ?? []) : [];
  if (list === undefined || resource === undefined) throw new AnalyzerProblem(`${property} of nodes is not known`);
  return parseQuantity(String(fieldsOf(fieldsOf(node['status'])[list])[resource])) ?? 0;
}

/** `count() < 3`, `sum(cpuCapacity) >= 4`, `nodeCondition(Ready) == False`: over the nodes that match its filters. */
function judgeNodes(spec: AnalyzerSpec, nodes: Objects): readonly AnalyzerResult[] {
  const filters = spec.settings.map('filters');
  const wanted = Object.keys(AMOUNTS).flatMap((name) => {
    const text = filters?.text(name) ?? filters?.whole(name)?.toString();
    return text === undefined ? [] : [[name, quantityOf(text)] as const];
  });
  const labels = filters?.map('selector')?.textMap('matchLabel') ?? {};
  const own = nodes.filter((node) => {
    const isLabelled = Object.entries(labels).every(([key, value]) => node.metadata.labels[key] === value);
    return isLabelled && wanted.every(([name, amount]) => amountOf(node, name) >= amount);
  });
  return firstOutcome<undefined>((when) => {
    const [, call = 'count', property = '', sign = '', text = ''] =
      /^\s*(?:(\w+)\(([^)]*)\)\s*)?([=!<>]+)\s*(\S+)\s*$/.exec(when) ?? [];
    if (text === '') throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} is not known`);
    if (call === 'nodeCondition') return own.some((node) => conditionOf(node, property) === text);
    const amounts = call === 'count' ? [] : own.map((node) => amountOf(node, property));
    const value: Readonly<Record<string, number>> = {
      count: own.length,
      sum: amounts.reduce((sum, one) => sum + one, 0),
      min: Math.min(...amounts),
      max: Math.max(...amounts),
    };
    if (!Object.hasOwn(value, call)) throw new AnalyzerProblem(`the function ${call} is not known`);
    return compareNumbers(sign, value[call] ?? 0, quantityOf(text), true);
  })(undefined, spec);
}

function conditionOf(node: LiveObject, type: string): unknown {
  const { conditions } = fieldsOf(node['status']);
  const all = Array.isArray(conditions) ? (conditions as readonly unknown[]) : [];
  return all.map(fieldsOf).find((one) => one['type'] === type)?.['status'];
}
