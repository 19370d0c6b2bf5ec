/**
 * Everything that a run creates in an engine has labels, so that it can be found and removed: by the run itself at its end,
 * or by a later run if it was killed.
 */
import { asError, CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { isObject } from '../../core/json.ts';
import { isOwnerRunning, ownerText, parseOwner } from '../../platform/files/owner.ts';
import type { Engine, EngineRequest } from './docker.ts';

/** Id of the run. */
export const RUN_LABEL = 'curlew.run';
/** One container or one image build of a run, as `<run>.<number>`. */
export const PART = 'curlew.part';
/** The process of the run. */
const OWNER = 'curlew.owner';
/** On an empty volume: the run pulls this image, which the engine did not have before. */
const PULLED = 'curlew.pulled';

export type ContainerLabels = Readonly<Record<string, string>>;

export function ownLabels(run: string): ContainerLabels {
  return { [RUN_LABEL]: run, [OWNER]: ownerText() };
}

/** Time limit of cleanup, which continues when the run is canceled. */
const PATIENCE_MS = 60_000;
/** Minimum age of objects whose process is not visible here (another machine or container, or before a reboot). */
const MIN_AGE_S = 24 * 60 * 60;

interface EngineObjects {
  readonly containers: readonly EngineObject[];
  readonly images: readonly EngineObject[];
  readonly volumes: readonly EngineObject[];
}

export interface EngineObject {
  readonly id: string;
  readonly labels: ContainerLabels;
  /** Seconds since 1970; 0 if unknown. */
  readonly created: number;
  /** Parent image of an image. */
  readonly parent: string;
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function objectOf(fields: Fields, id: unknown): readonly EngineObject[] {
  if (typeof id !== 'string' || id === '') return [];
  const { Labels: labels, Created: created, CreatedAt: createdAt, ParentId: parent } = fields;
  const texts = isObject(labels) ? Object.entries(labels).filter(([, value]) => typeof value === 'string') : [];
  const at = typeof createdAt === 'string' ? Date.parse(createdAt) / 1000 : created;
  return [
    {
      id,
      labels: Object.fromEntries(texts.map(([name, value]) => [name, String(value)])),
      created: typeof at === 'number' && Number.isFinite(at) ? at : 0,
      parent: typeof parent === 'string' ? parent : '',
    },
  ];
}

async function listLabelled(engine: Engine, label: string, signal: AbortSignal): Promise<EngineObjects> {
  const list = async (what: string, path: string): Promise<unknown> => {
    const query = { all: true, filters: { label: [label] } };
    const request: EngineRequest = { doing: `list ${what} of the Docker engine`, method: 'GET', path, query };
    return (await engine.request(request, { signal })).value;
  };
  const [containerList, built, volumes] = await Promise.all([
    list('containers', '/containers/json'),
    list('images', '/images/json'),
    list('volumes', '/volumes'),
  ]);
  const [containers, images] = [fieldsOf(containerList), fieldsOf(built)];
  return {
    containers: containers.flatMap((fields) => objectOf(fields, fields['Id'])),
    images: images.flatMap((fields) => objectOf(fields, fields['Id'])),
    volumes: fieldsOf(isObject(volumes) ? volumes['Volumes'] : []).flatMap((fields) =>
      objectOf(fields, fields['Name']),
    ),
  };
}

/** Every image of the engine, including intermediate ones; `named` if it has a name or a registry's digest. */
export async function listImages(
  engine: Engine,
  signal: AbortSignal,
): Promise<readonly (EngineObject & { readonly named: boolean })[]> {
  const request = { doing: 'list images of the Docker engine', method: 'GET', path: '/images/json' } as const;
  const { value } = await engine.request({ ...request, query: { all: true } }, { signal });
  return fieldsOf(value).flatMap((fields) => {
    const { RepoTags: tags, RepoDigests: digests } = fields;
    const names = [tags, digests].flatMap((list) => (Array.isArray(list) ? list : []));
    const named = names.some((name) => typeof name === 'string' && !name.startsWith('<none>'));
    return objectOf(fields, fields['Id']).map((one) => ({ ...one, named }));
  });
}

/** Removes a container with its unnamed volumes, running or not, and waits until it is gone. */
export async function removeContainer(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const doing = `remove container ${id.slice(0, 60)}`;
  const query = { force: true, v: true };
  const { status } = await engine.request(
    { doing, method: 'DELETE', path: `/containers/${id}`, query, expected: [404, 409] },
    { signal },
  );
  // 409: it is already being removed, for example by the engine's builder.
  if (status !== 409) return;
  const wait = { doing, method: 'POST', path: `/containers/${id}/wait`, query: { condition: 'removed' } } as const;
  await engine.request({ ...wait, expected: [404] }, { signal });
}

/** True if it was removed; false if it is still in use. `prune` also removes parents without a name. */
export async function removeImage(
  engine: Engine,
  id: string,
  { prune, signal }: { readonly prune: boolean; readonly signal: AbortSignal },
): Promise<boolean> {
  const path = `/images/${id}`;
  const request = { doing: `remove image ${id}`, method: 'DELETE', path, query: { noprune: !prune } } as const;
  return (await engine.request({ ...request, expected: [404, 409] }, { signal })).status !== 409;
}

async function removeVolume(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const request = { doing: `remove volume ${id}`, method: 'DELETE', path: `/volumes/${id}` } as const;
  await engine.request({ ...request, expected: [404, 409] }, { signal });
}

/** Removes children before their parents: an image with children cannot be removed. */
export async function removeBuiltImages(
  engine: Engine,
  images: readonly EngineObject[],
  signal: AbortSignal,
): Promise<void> {
  let remaining = images;
  while (remaining.length > 0) {
    const parents = new Set(remaining.map(({ parent }) => parent));
    const leaves = remaining.filter(({ id }) => !parents.has(id));
    for (const { id } of leaves) await removeImage(engine, id, { prune: false, signal });
    if (leaves.length === 0) return;
    remaining = remaining.filter((image) => !leaves.includes(image));
  }
}

async function removeFound(
  engine: Engine,
  { containers, images, volumes }: EngineObjects,
  signal: AbortSignal,
): Promise<void> {
  for (const { id } of containers) await removeContainer(engine, id, signal);
  await removeBuiltImages(engine, images, signal);
  for (const { id, labels } of volumes) {
    const pulled = labels[PULLED];
    if (pulled !== undefined) await removeImage(engine, pulled, { prune: true, signal });
    await removeVolume(engine, id, signal);
  }
}

/** Cleanup that continues when the run is canceled, within a time limit; a failure is only a warning. */
export async function tidy(report: Report, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  try {
    await work(AbortSignal.timeout(PATIENCE_MS));
  } catch (error) {
    const text = error instanceof CurlewError ? error.message : asError(error).message;
    report({
      type: 'note',
      level: 'warning',
      text: `cannot clean up in the Docker engine: ${text}; a later build tries again`,
    });
  }
}

/** Removes everything with this label and value. */
export async function removeLabelled(
  engine: Engine,
  name: string,
  value: string,
  signal: AbortSignal,
): Promise<{ readonly found: boolean }> {
  const objects = await listLabelled(engine, `${name}=${value}`, signal);
  await removeFound(engine, objects, signal);
  return { found: objects.containers.length + objects.images.length + objects.volumes.length > 0 };
}

/** Kills the containers with this label, so that calls that wait for them return. */
export async function killLabelled(engine: Engine, name: string, value: string, signal: AbortSignal): Promise<void> {
  const query = { filters: { label: [`${name}=${value}`] } };
  const list = { doing: 'list containers', method: 'GET', path: '/containers/json', query } as const;
  for (const { Id: id } of fieldsOf((await engine.request(list, { signal })).value)) {
    if (typeof id !== 'string') continue;
    const kill = { doing: `end container ${id}`, method: 'POST', path: `/containers/${id}/kill` } as const;
    await engine.request({ ...kill, expected: [404, 409, 500] }, { signal });
  }
}

/** Removes the objects of runs whose process has ended. */
export async function sweepDeadRuns(engine: Engine, now: () => number, signal: AbortSignal): Promise<void> {
  const { containers, images, volumes } = await listLabelled(engine, RUN_LABEL, signal);
  const dead = ({ labels, created }: EngineObject): boolean => {
    const owner = parseOwner(labels[OWNER] ?? '');
    const there = owner === undefined ? undefined : isOwnerRunning(owner);
    return there === false || (there === undefined && now() / 1000 - created > MIN_AGE_S);
  };
  const objects = { containers: containers.filter(dead), images: images.filter(dead), volumes: volumes.filter(dead) };
  await removeFound(engine, objects, signal);
}

/** Records in the engine that an image will be pulled; returns a function that removes the record. */
export async function markPull(
  engine: Engine,
  { run, name, number }: { readonly run: string; readonly name: string; readonly number: number },
  signal: AbortSignal,
): Promise<(signal: AbortSignal) => Promise<void>> {
  const volume = `curlew-${run}-${number}`;
  const body = { Name: volume, Labels: { ...ownLabels(run), [PULLED]: name } };
  await engine.request({ doing: `pull ${name}`, method: 'POST', path: '/volumes/create', body }, { signal });
  return async (later) => removeVolume(engine, volume, later);
}
