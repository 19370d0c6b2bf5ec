/** Verdicts of the analyzers of Troubleshoot's specs about facts of a machine and about objects of its cluster. Pure. */
import { healthOf } from '../../cluster/channel/health.ts';
import type { LiveObject } from '../../cluster/kube/objects.ts';
import { fieldsOf, listOf } from '../../core/json.ts';
import { satisfiesConstraint } from '../../formats/go-template/constraint.ts';
import { UnfitValue } from '../../formats/go-template/values.ts';
import { analyzeWith, factOf, analyzerTitle } from '../preflight/analyze.ts';
import { ANALYZERS } from '../preflight/checks.ts';
import type { Fact } from '../preflight/facts.ts';
import { parseQuantity } from '../preflight/go-notation.ts';
import {
  AnalyzerProblem,
  compareNumbers,
  firstOutcome,
  messageOf,
  quantityOf,
  checkResult,
  wholeNumber,
  type AnalyzerResult,
} from '../preflight/outcome.ts';
import type { AnalyzerSpec, HostPreflight } from '../preflight/spec.ts';
import type { CollectedCluster } from './cluster-items.ts';
import type { Verdicts } from './support-index.ts';

type Objects = readonly LiveObject[];
type Judge = (spec: AnalyzerSpec, objects: Objects, facts: CollectedCluster) => readonly AnalyzerResult[];

/** The kind of objects that it needs, and how it evaluates them. */
const CLUSTER_ANALYZERS: Readonly<Record<string, readonly [of: string, judge: Judge]>> = {
  clusterVersion: ['Namespace', judgeVersion],
  nodeResources: ['Node', judgeNodes],
  containerRuntime: ['Node', judgeRuntimes],
  deploymentStatus: ['Deployment', judgeWorkload],
  statefulsetStatus: ['StatefulSet', judgeWorkload],
  replicasetStatus: ['ReplicaSet', judgeWorkload],
  jobStatus: ['Job', judgeWorkload],
  clusterPodStatuses: ['Pod', judgePods],
  storageClass: ['StorageClass', judgePresence],
  customResourceDefinition: ['CustomResourceDefinition', judgePresence],
  secret: ['Secret', judgePresence],
  configMap: ['ConfigMap', judgePresence],
  ingress: ['Ingress', judgePresence],
};

/** An analyzer that says nothing, because this version does not know it or its facts are missing, is not evaluated. */
function verdictsOf(
  specs: readonly HostPreflight[],
  judge: (spec: AnalyzerSpec) => readonly AnalyzerResult[],
  title: (spec: AnalyzerSpec) => string,
): Verdicts {
  const notEvaluated: Verdicts['notEvaluated'][number][] = [];
  const orNothing = (one: AnalyzerSpec, spec: string): readonly AnalyzerResult[] => {
    try {
      return judge(one);
    } catch (error) {
      if (!(error instanceof AnalyzerProblem || error instanceof UnfitValue)) throw error;
      notEvaluated.push({ title: title(one), spec, reason: error.message });
      return [];
    }
  };
  return { results: analyzeWith(specs, orNothing, title), notEvaluated };
}

function unknown({ kind }: AnalyzerSpec): AnalyzerProblem {
  return new AnalyzerProblem(`the analyzer ${kind} is not known to this version`);
}

export function hostVerdicts(specs: readonly HostPreflight[], facts: readonly Fact[]): Verdicts {
  const judge = (spec: AnalyzerSpec): readonly AnalyzerResult[] => {
    const analyzer = ANALYZERS.get(spec.kind);
    if (analyzer === undefined) throw unknown(spec);
    const fact = factOf(spec, analyzer, facts);
    if (fact?.status !== 'collected') throw new AnalyzerProblem(fact?.problem ?? 'nothing was collected for it');
    return analyzer.analyze(fact.data, spec);
  };
  return verdictsOf(specs, judge, analyzerTitle);
}

export function clusterVerdicts(specs: readonly HostPreflight[], facts: CollectedCluster): Verdicts {
  const judge = (spec: AnalyzerSpec): readonly AnalyzerResult[] => {
    const [of, evaluate] = Object.hasOwn(CLUSTER_ANALYZERS, spec.kind) ? (CLUSTER_ANALYZERS[spec.kind] ?? []) : [];
    if (of === undefined || evaluate === undefined) throw unknown(spec);
    if (facts.problem !== undefined) throw new AnalyzerProblem(facts.problem);
    const objects = facts.objects.get(of);
    if (objects === undefined) throw new AnalyzerProblem(`objects of the kind ${of} were not collected`);
    return evaluate(spec, objects, facts);
  };
  return verdictsOf(specs, judge, (spec) => spec.checkName ?? [spec.kind, nameIn(spec)].join(' ').trim());
}

/** The name of the object, such as `secretName` of `secret`. */
function nameIn({ kind, settings }: AnalyzerSpec): string | undefined {
  return settings.text('name') ?? settings.text(`${kind}Name`);
}

function judgeVersion(spec: AnalyzerSpec, _: Objects, { version }: CollectedCluster): readonly AnalyzerResult[] {
  if (version === undefined) throw new AnalyzerProblem('the version of the cluster is not known');
  return firstOutcome<string>((when, present) => satisfiesConstraint(when, present))(version.replace(/^v/, ''), spec);
}

function judgeRuntimes(spec: AnalyzerSpec, nodes: Objects): readonly AnalyzerResult[] {
  const runtimes = nodes.map(({ status }) => {
    return String(fieldsOf(fieldsOf(status)['nodeInfo'])['containerRuntimeVersion']).replace(/:.*$/, '');
  });
  return firstOutcome<undefined>((when) => {
    const [sign, wanted] = signedText(when);
    return (sign === '==') === runtimes.includes(wanted);
  })(undefined, spec);
}

/** The outcome that passes if the object is there, else the one that fails; conditions have no meaning. */
function judgePresence(spec: AnalyzerSpec, objects: Objects): readonly AnalyzerResult[] {
  const { kind, settings, outcomes } = spec;
  const [name, namespace, key] = [nameIn(spec), settings.text('namespace'), settings.text('key')];
  const isThere = objects.some(({ metadata, data }) => {
    // A storage class without a name is the default one.
    const isDefault = metadata.annotations['storageclass.kubernetes.io/is-default-class'] === 'true';
    const isNamed = name === undefined ? kind === 'storageClass' && isDefault : metadata.name === name;
    const isIn = namespace === undefined || metadata.namespace === namespace;
    return isNamed && isIn && (key === undefined || Object.hasOwn(fieldsOf(data), key));
  });
  const outcome = outcomes.find(({ verdict }) => (verdict === 'pass') === isThere);
  if (outcome !== undefined) return [checkResult(outcome)];
  return [{ verdict: isThere ? 'pass' : 'fail', message: isThere ? 'it exists' : 'it does not exist', uri: undefined }];
}

/** Values that conditions compare, by their first word, if any. */
const COUNTS: Readonly<Record<string, string>> = {
  '': 'readyReplicas',
  ready: 'readyReplicas',
  available: 'availableReplicas',
  succeeded: 'succeeded',
  failed: 'failed',
};

/** Such as `< 1` replicas, `available < 1`, or `failed > 0` of a job; `absent` is true without the object. */
function judgeWorkload(spec: AnalyzerSpec, objects: Objects): readonly AnalyzerResult[] {
  const [name, namespace] = [spec.settings.text('name'), spec.settings.text('namespace') ?? 'default'];
  if (name === undefined) throw new AnalyzerProblem('it has no name: several objects are not known to this version');
  const found = objects.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  if (found === undefined) {
    const absent = spec.outcomes.find(({ when }) => when === 'absent');
    if (absent !== undefined) return [checkResult(absent)];
    return [
      {
        verdict: 'fail',
        message: `the ${spec.kind.replace('Status', '')} ${JSON.stringify(name)} was not found`,
        uri: undefined,
      },
    ];
  }
  const status = fieldsOf(found['status']);
  return firstOutcome<undefined>((when) => {
    if (when === 'absent') return false;
    const [, word = '', sign = '', wanted = ''] = /^\s*(?:(\w+)\s+)?([=!<>]+)\s*(\d+)\s*$/.exec(when) ?? [];
    const field = COUNTS[word];
    if (sign === '' || field === undefined)
      throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} is not known`);
    return compareNumbers(sign, Number(status[field] ?? 0), wholeNumber(wanted));
  })(undefined, spec);
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
    const phase = String(fieldsOf(pod['status'])['phase']);
    const words = new Set([phase, ...reasonsOf(pod), ...(state === 'healthy' ? ['Healthy'] : [])]);
    const outcome = outcomes.find(({ when }) => {
      if (when === '') return true;
      const [sign, wanted] = signedText(when);
      return (sign === '==') === words.has(wanted);
    });
    if (outcome === undefined) return [];
    const { namespace = '', name } = pod.metadata;
    const data = { Namespace: namespace, Name: name, Status: { Phase: phase, Reason: reason, Message: reason } };
    return [{ ...checkResult(outcome), message: messageOf(outcome.message, data) }];
  });
  const message = 'none of its outcomes holds for a pod';
  return results.length > 0 ? results : [{ verdict: 'pass', message, uri: undefined }];
}

/** The reasons of the pod and of its containers, such as `CrashLoopBackOff` and `Init:Error`. */
function reasonsOf({ status }: LiveObject): readonly string[] {
  const { reason, containerStatuses, initContainerStatuses } = fieldsOf(status);
  const of = (list: unknown, before: string): readonly string[] =>
    listOf(list).flatMap((one) =>
      Object.values(fieldsOf(fieldsOf(one)['state'])).map((state) => before + String(fieldsOf(state)['reason'])),
    );
  return [String(reason), ...of(initContainerStatuses, 'Init:'), ...of(containerStatuses, '')];
}

/** Such as `memoryAllocatable`, and how a node calls it. */
const AMOUNTS: ReadonlyMap<string, readonly [list: string, resource: string]> = new Map(
  ['cpu cpu', 'memory memory', 'pod pods', 'ephemeralStorage ephemeral-storage'].flatMap((row) => {
    const [name = '', resource = ''] = row.split(' ');
    return ['Capacity', 'Allocatable'].map((list) => [`${name}${list}`, [list.toLowerCase(), resource]] as const);
  }),
);

function amountOf(node: LiveObject, property: string): number {
  const [list, resource] = AMOUNTS.get(property) ?? [];
  if (list === undefined || resource === undefined) throw new AnalyzerProblem(`${property} of nodes is not known`);
  return parseQuantity(String(fieldsOf(fieldsOf(node['status'])[list])[resource])) ?? 0;
}

/** `count() < 3`, `sum(cpuCapacity) >= 4`, `nodeCondition(Ready) == False`: over the nodes that match its filters. */
function judgeNodes(spec: AnalyzerSpec, nodes: Objects): readonly AnalyzerResult[] {
  const filters = spec.settings.map('filters');
  const labels = Object.entries(filters?.map('selector')?.textMap('matchLabel') ?? {});
  const own = nodes.filter((node) => {
    const isLabelled = labels.every(([key, value]) => node.metadata.labels[key] === value);
    const isEnough = [...AMOUNTS.keys()].every((name) => {
      const least = filters?.text(name) ?? filters?.whole(name);
      return least === undefined || amountOf(node, name) >= quantityOf(String(least));
    });
    return isLabelled && isEnough;
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
  return listOf(conditions)
    .map(fieldsOf)
    .find((one) => one['type'] === type)?.['status'];
}
