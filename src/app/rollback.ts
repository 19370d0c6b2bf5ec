/** Rolls an add-on back to its state before the last change. */
import { firstOf } from '../core/counted.ts';
import { buffer } from 'node:stream/consumers';
import { MAX_MANIFEST_BYTES, objectKey, readObjects, type ManifestObject } from '../cluster/channel/objects.ts';
import { requireRefusal } from '../core/errors.ts';
import { formatRef } from '../core/ref.ts';
import { splitYaml } from '../formats/yaml/yaml.ts';
import { keptPackage } from '../runtime/node/kept-package.ts';
import { readRecords } from '../runtime/node/records.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { recordedRef, recordOf } from '../runtime/plan/records.ts';
import { unfinishedRequest } from '../runtime/prepare/last-run.ts';
import { rollbackRequest } from '../runtime/prepare/rollback.ts';
import type { DryRun } from '../runtime/run/dry-run.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { Context } from '../core/context.ts';
import { savedCommandOf, parseCommand } from '../steps/node/saved-command.ts';
import { planInstalled, runInstalled, type InstalledRun } from '../steps/node/installed-run.ts';
import { ROLLBACK, type RollbackRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

interface Rollback extends InstalledRun {
  /** Warns about objects that stay in the cluster, once the request is known. */
  readonly warn: () => void;
}

function installedRun(request: RollbackRequest, { cwd, report, signal }: Context): Rollback {
  const { addon } = request;
  const command = savedCommandOf({ name: 'rollback', request, cwd }, ROLLBACK.fields);
  const wasThis = async (directory: string): Promise<boolean> => {
    const last = parseCommand((await unfinishedRequest(directory))?.asked?.command, ROLLBACK.fields);
    return last?.name === 'rollback' && last.request.addon === addon;
  };
  let left: string | undefined;
  const requestIn = async (directory: string): ReturnType<typeof rollbackRequest> => {
    const asked = await rollbackRequest(directory, addon, { isAgain: async () => wasThis(directory), report, signal });
    // The run removes the package that has them.
    left = await objectsLeft(directory, asked.packages[0]?.source, { signal });
    return asked;
  };
  const warn = (): void => {
    if (left !== undefined) report({ type: 'note', level: 'warning', text: left });
  };
  return { command, requestIn, warn };
}

const MAX_NAMED = 10;

/**
 * Names the objects in the YAML of the installed package that the restored one does not have; undefined if there are none, or on a
 * node that joined, whose hooks apply nothing.
 */
async function objectsLeft(
  directory: string,
  restored: SourcePackage | undefined,
  { signal }: Pick<Context, 'signal'>,
): Promise<string | undefined> {
  if (restored === undefined) return undefined;
  const records = await readRecords(directory);
  const record = recordOf(records.applied, restored.ref.name);
  if (record?.digest === undefined || record.by === 'join') return undefined;
  const ref = recordedRef(records, restored.ref.name, record.version);
  try {
    const kept = await objectsOf(restored, signal);
    const before = await objectsOf(await keptPackage(directory, ref, record.digest, { signal }), signal);
    const names = [...before].flatMap(([key, name]) => (kept.has(key) ? [] : [name]));
    if (names.length === 0) return undefined;
    return `${formatRef(restored.ref)} does not have these objects, which stay in the cluster until a hook or kubectl deletes them: ${firstOf(names, MAX_NAMED)}`;
  } catch (error) {
    requireRefusal(error, signal);
    // A changed package that is to be replaced does not stop the rollback.
    return undefined;
  }
}

/** API groups of files that are read on a node or by kustomize, and never applied. */
const FILE_GROUPS = /^(?:troubleshoot\.sh|kustomize\.config\.k8s\.io)\//;

/** Objects in the YAML files of a package, by their keys. Documents that are none, such as templates and values, are left out. */
async function objectsOf(source: SourcePackage, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const objects: ManifestObject[] = [];
  for (const { path, size } of source.files) {
    if (!/\.ya?ml$/.test(path) || size > MAX_MANIFEST_BYTES) continue;
    const text = (await buffer(source.read(path, { signal }))).toString();
    for (const part of splitYaml(text)) objects.push(...(readObjects(path, Buffer.from(part.text)).objects ?? []));
  }
  const named = ({ kind, namespace, name }: ManifestObject): string =>
    `${kind} ${name}${namespace === undefined ? '' : ` (namespace ${namespace})`}`;
  const applied = objects.filter(({ apiVersion }) => !FILE_GROUPS.test(apiVersion));
  return new Map(applied.map((object) => [objectKey(object), named(object)]));
}

/**
 * Installs the package and the settings of the add-on before its last change. `NOT_FOUND` if there is no former state.
 */
export const rollback = useCase(ROLLBACK, async (request, context): Promise<RunResult> => {
  const run = installedRun(request, context);
  return runInstalled(run, request, context, (result) => {
    run.warn();
    return result;
  });
});

/** Plans {@link rollback}; changes nothing. */
export const planRollback = useCase(ROLLBACK, async (request, context): Promise<DryRun> => {
  const run = installedRun(request, context);
  const plan = await planInstalled(run, request, context);
  run.warn();
  return plan;
});
