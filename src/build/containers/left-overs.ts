/**
 * What a run makes in an engine carries labels, so that it can be found and removed: by the run itself at its end, or,
 * when that was killed, by a later one.
 */
import { asError, CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { isObject } from '../../core/json.ts';
import { isOwnerRunning, ownOwner } from '../../platform/files/owner.ts';
import type { Engine, EngineRequest } from './docker.ts';

/** Id of the run. */
export const RUN = 'curlew.run';
/** One container or one image build of a run, as `<run>.<number>`. */
export const PART = 'curlew.part';
/** The process of the run: where, pid, start. */
const OWNER = 'curlew.owner';
/** On a volume that holds nothing: the run pulls this image, which was not there before. */
const PULLED = 'curlew.pulled';

export type Labels = Readonly<Record<string, string>>;

export function ownLabels(run: string): Labels {
  const { place, pid, start } = ownOwner();
  return { [RUN]: run, [OWNER]: `${place} ${pid} ${start}` };
}

/** Cleaning up goes on when the run is cancelled, but not for ever. */
const PATIENCE_MS = 60_000;
/** Things whose process cannot be seen (another machine, a container, before a reboot) are left alone this long. */
const REST_S = 24 * 60 * 60;

interface Found {
  readonly containers: readonly Thing[];
  readonly images: readonly Thing[];
  readonly volumes: readonly Thing[];
}

export interface Thing {
  readonly id: string;
  readonly labels: Labels;
  /** Seconds since 1970; 0 when it is not told. */
  readonly created: number;
  /** Of an image: the one it was made from. */
  readonly parent: string;
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function thingOf(fields: Fields, id: unknown): readonly Thing[] {
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

async function listLabelled(engine: Engine, label: string, signal: AbortSignal): Promise<Found> {
  const ask = async (what: string, path: string): Promise<unknown> => {
    const query = { all: true, filters: { label: [label] } };
    const request: EngineRequest = { doing: `list ${what} of the Docker engine`, method: 'GET', path, query };
    return (await engine.ask(request, { signal })).value;
  };
  const [found, built, volumes] = await Promise.all([
    ask('containers', '/containers/json'),
    ask('images', '/images/json'),
    ask('volumes', '/volumes'),
  ]);
  const [containers, images] = [fieldsOf(found), fieldsOf(built)];
  return {
    containers: containers.flatMap((fields) => thingOf(fields, fields['Id'])),
    images: images.flatMap((fields) => thingOf(fields, fields['Id'])),
    volumes: fieldsOf(isObject(volumes) ? volumes['Volumes'] : []).flatMap((fields) => thingOf(fields, fields['Name'])),
  };
}

/** Every image of the engine, also those in between; `named` when it has a name or a registry's digest. */
export async function listImages(
  engine: Engine,
  signal: AbortSignal,
): Promise<readonly (Thing & { readonly named: boolean })[]> {
  const request = { doing: 'list images of the Docker engine', method: 'GET', path: '/images/json' } as const;
  const { value } = await engine.ask({ ...request, query: { all: true } }, { signal });
  return fieldsOf(value).flatMap((fields) => {
    const { RepoTags: tags, RepoDigests: digests } = fields;
    const names = [tags, digests].flatMap((list) => (Array.isArray(list) ? list : []));
    const named = names.some((name) => typeof name === 'string' && !name.startsWith('<none>'));
    return thingOf(fields, fields['Id']).map((thing) => ({ ...thing, named }));
  });
}

/** Removes a container with its unnamed volumes, running or not, and waits until it is gone. */
export async function removeContainer(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const doing = `remove container ${id.slice(0, 60)}`;
  const query = { force: true, v: true };
  const { status } = await engine.ask(
    { doing, method: 'DELETE', path: `/containers/${id}`, query, expected: [404, 409] },
    { signal },
  );
  // 409: somebody removes it already, such as the engine's builder.
  if (status !== 409) return;
  const wait = { doing, method: 'POST', path: `/containers/${id}/wait`, query: { condition: 'removed' } } as const;
  await engine.ask({ ...wait, expected: [404] }, { signal });
}

/** True when it is gone; false when something else still uses it. `prune`: parents that have no name go too. */
export async function removeImage(
  engine: Engine,
  id: string,
  { prune, signal }: { readonly prune: boolean; readonly signal: AbortSignal },
): Promise<boolean> {
  const path = `/images/${id}`;
  const request = { doing: `remove image ${id}`, method: 'DELETE', path, query: { noprune: !prune } } as const;
  return (await engine.ask({ ...request, expected: [404, 409] }, { signal })).status !== 409;
}

async function removeVolume(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const request = { doing: `remove volume ${id}`, method: 'DELETE', path: `/volumes/${id}` } as const;
  await engine.ask({ ...request, expected: [404, 409] }, { signal });
}

/** Children go before their parents: an image that another one is made of cannot be removed. */
export async function removeImages(engine: Engine, images: readonly Thing[], signal: AbortSignal): Promise<void> {
  let left = images;
  while (left.length > 0) {
    const parents = new Set(left.map(({ parent }) => parent));
    const leaves = left.filter(({ id }) => !parents.has(id));
    for (const { id } of leaves) await removeImage(engine, id, { prune: false, signal });
    if (leaves.length === 0) return;
    left = left.filter((image) => !leaves.includes(image));
  }
}

async function removeFound(engine: Engine, { containers, images, volumes }: Found, signal: AbortSignal): Promise<void> {
  for (const { id } of containers) await removeContainer(engine, id, signal);
  await removeImages(engine, images, signal);
  for (const { id, labels } of volumes) {
    const pulled = labels[PULLED];
    if (pulled !== undefined) await removeImage(engine, pulled, { prune: true, signal });
    await removeVolume(engine, id, signal);
  }
}

/** Work that goes on when the run is cancelled, but not for ever; what it cannot do is a warning, never a failure. */
export async function tidy(report: Report, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  try {
    await work(AbortSignal.timeout(PATIENCE_MS));
  } catch (error) {
    const text = error instanceof CurlewError ? error.message : asError(error).message;
    report({
      type: 'note',
      level: 'warning',
      text: `clean up in the Docker engine: ${text}; a later build tries again`,
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
  const found = await listLabelled(engine, `${name}=${value}`, signal);
  await removeFound(engine, found, signal);
  return { found: found.containers.length + found.images.length + found.volumes.length > 0 };
}

/** Ends the containers with this label, so that who waits for them goes on. */
export async function killLabelled(engine: Engine, name: string, value: string, signal: AbortSignal): Promise<void> {
  const query = { filters: { label: [`${name}=${value}`] } };
  const list = { doing: 'list containers', method: 'GET', path: '/containers/json', query } as const;
  for (const { Id: id } of fieldsOf((await engine.ask(list, { signal })).value)) {
    if (typeof id !== 'string') continue;
    const kill = { doing: `end container ${id}`, method: 'POST', path: `/containers/${id}/kill` } as const;
    await engine.ask({ ...kill, expected: [404, 409, 500] }, { signal });
  }
}

/** Removes what runs have left whose process is gone. */
export async function sweepDeadRuns(engine: Engine, now: () => number, signal: AbortSignal): Promise<void> {
  const { containers, images, volumes } = await listLabelled(engine, RUN, signal);
  const dead = ({ labels, created }: Thing): boolean => {
    const [place = '', pid = '', start = ''] = (labels[OWNER] ?? '').split(' ');
    const there = /^\d{1,10}$/.test(pid) ? isOwnerRunning({ place, pid: Number(pid), start }) : undefined;
    return there === false || (there === undefined && now() / 1000 - created > REST_S);
  };
  const left = { containers: containers.filter(dead), images: images.filter(dead), volumes: volumes.filter(dead) };
  await removeFound(engine, left, signal);
}

/** Notes in the engine that an image is about to be pulled; what it hands back takes the note away. */
export async function markPull(
  engine: Engine,
  { run, name, number }: { readonly run: string; readonly name: string; readonly number: number },
  signal: AbortSignal,
): Promise<(signal: AbortSignal) => Promise<void>> {
  const volume = `curlew-${run}-${number}`;
  const body = { Name: volume, Labels: { ...ownLabels(run), [PULLED]: name } };
  await engine.ask({ doing: `pull ${name}`, method: 'POST', path: '/volumes/create', body }, { signal });
  return async (later) => removeVolume(engine, volume, later);
}
