/** What a cluster reports about an object that is not healthy: its latest warnings, and the state and logs of its pods. */
import { visible } from '../../core/diagnostic.ts';
import { fieldsOf, isObject, listOf } from '../../core/json.ts';
import { CurlewError } from '../../core/errors.ts';
import { listObjects, type LiveObject } from '../kube/objects.ts';
import { apiPath } from '../kube/path.ts';
import type { Resource } from '../kube/resources.ts';
import { withQuery } from '../kube/resources.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import { EVENTS, PODS } from '../kube/core-kinds.ts';

const MAX_EVENTS = 3;
const MAX_PODS = 2;
const MAX_LINES = 10;
const MAX_LENGTH = 300;

/** Lines about the cause, of a pod the state of its containers first; empty if nothing is reported, or if the user may not read it. */
export async function diagnose(
  { call }: Pick<ChannelCluster, 'call'>,
  { kind }: Resource,
  { metadata, ...object }: LiveObject,
): Promise<readonly string[]> {
  const { namespace, uid } = metadata;
  if (namespace === undefined) return [];
  try {
    const lines = await warningsOf({ call }, namespace, uid);
    const pods = kind === 'Pod' ? [{ metadata, ...object }] : await podsOf({ call }, namespace, object);
    for (const pod of pods.filter((one) => !isReady(one)).slice(0, MAX_PODS)) {
      const { name } = pod.metadata;
      for (const { container, text, isPrevious } of containerTroubles(pod)) {
        lines.push(`pod ${name}: ${container}: ${text}`);
        lines.push(...(await logOf({ call }, { namespace, name, container, isPrevious })).map((line) => `  ${line}`));
      }
      if (kind !== 'Pod')
        lines.push(...(await warningsOf({ call }, namespace, pod.metadata.uid)).map((line) => `pod ${name}: ${line}`));
    }
    return lines.map((line) => visible(shortened(line)));
  } catch (error) {
    // The object's own reason is reported in any case.
    if (error instanceof CurlewError) return [];
    throw error;
  }
}

/** Without its middle: the cause of a failed pull is at the end. */
function shortened(line: string): string {
  if (line.length <= MAX_LENGTH) return line;
  return `${line.slice(0, MAX_LENGTH / 2)} … ${line.slice(3 - MAX_LENGTH / 2)}`;
}

async function warningsOf({ call }: Pick<ChannelCluster, 'call'>, namespace: string, uid: string): Promise<string[]> {
  const fieldSelector = `involvedObject.uid=${uid},type=Warning`;
  const events = (await listObjects(call, EVENTS, { namespace, fieldSelector })) ?? [];
  const latest = events.toSorted((a, b) => timeOf(a).localeCompare(timeOf(b))).slice(-MAX_EVENTS);
  return latest.map(({ reason, message }) => [reason, message].filter((text) => typeof text === 'string').join(': '));
}

function timeOf({ lastTimestamp, eventTime }: LiveObject): string {
  return [lastTimestamp, eventTime].find((time) => typeof time === 'string') ?? '';
}

async function podsOf(
  { call }: Pick<ChannelCluster, 'call'>,
  namespace: string,
  { spec }: Readonly<Record<string, unknown>>,
): Promise<readonly LiveObject[]> {
  const labels = fieldsOf(fieldsOf(fieldsOf(spec)['selector'])['matchLabels']);
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`);
  if (pairs.length === 0) return [];
  return (await listObjects(call, PODS, { namespace, labelSelector: pairs.join(',') })) ?? [];
}

function isReady(pod: LiveObject): boolean {
  const conditions = listOf(fieldsOf(pod['status'])['conditions']).map(fieldsOf);
  return conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True');
}

interface ContainerTrouble {
  readonly container: string;
  readonly text: string;
  /** The log is that of the instance that ended. */
  readonly isPrevious: boolean;
}

function containerTroubles(pod: LiveObject): readonly ContainerTrouble[] {
  const { initContainerStatuses, containerStatuses } = fieldsOf(pod['status']);
  const all = [initContainerStatuses, containerStatuses].flatMap(listOf);
  return all.flatMap((status): readonly ContainerTrouble[] => {
    if (!isObject(status) || status['ready'] === true || typeof status['name'] !== 'string') return [];
    const state = fieldsOf(status['state']);
    const [waiting, ended] = [state['waiting'], state['terminated']].map((one) => (isObject(one) ? one : undefined));
    const from = waiting ?? ended;
    if (from === undefined || (ended !== undefined && ended['exitCode'] === 0)) return [];
    const last = fieldsOf(status['lastState'])['terminated'];
    const texts = [from['reason'], from['message'], endOf(ended ?? last)].filter(
      (text) => typeof text === 'string' && text !== '',
    );
    const isPrevious = waiting !== undefined && isObject(last);
    return [{ container: status['name'], text: texts.join(': '), isPrevious }];
  });
}

/** How a container ended: `OOMKilled, exit code 137`. */
function endOf(terminated: unknown): string {
  if (!isObject(terminated)) return '';
  const { reason, exitCode } = terminated;
  const parts = [typeof reason === 'string' && reason !== 'Error' ? reason : 'ended', `exit code ${String(exitCode)}`];
  return parts.join(', ');
}

async function logOf(
  { call }: Pick<ChannelCluster, 'call'>,
  {
    namespace,
    name,
    container,
    isPrevious,
  }: { readonly namespace: string; readonly name: string; readonly container: string; readonly isPrevious: boolean },
): Promise<readonly string[]> {
  const path = withQuery(apiPath`/api/v1/namespaces/${namespace}/pods/${name}/log`, {
    container,
    tailLines: MAX_LINES,
    limitBytes: MAX_LINES * MAX_LENGTH,
    previous: isPrevious ? 'true' : undefined,
  });
  const answer = await call(`read the log of ${name}`, { verb: 'get', path, accept: '*/*', isText: true }).catch(
    () => undefined,
  );
  if (answer?.outcome !== 'done' || typeof answer.value !== 'string') return [];
  return answer.value
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '');
}
