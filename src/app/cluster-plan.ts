/** The changes that are due on the machines of a cluster in a file, and why. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { fieldsOf, printableJson } from '../core/json.ts';
import { prefixOf } from '../core/layout.ts';
import { refOf } from '../core/package.ts';
import { useCase } from '../core/request.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { openSsh, type Ssh } from '../machine/ssh/ssh.ts';
import { channelsOf, openAddons } from './cluster-addons.ts';
import { inspect, type InspectedPackage } from './inspect.ts';
import type { PlacedEntry } from '../formats/archive/entry.ts';
import type { JsonObject } from '../formats/yaml/yaml.ts';
import { readHosts, type WrittenCluster } from '../machine/run/cluster-file.ts';
import { lookAt, type BundleFacts } from '../machine/run/look.ts';
import { planOf, type PlannedCluster } from '../machine/run/planned-cluster.ts';
import type { SavedClusterPlan } from '../machine/run/saved-plan.ts';
import { CLUSTER_PLAN } from '../requests/cluster.ts';
import { folderName } from '../spec/installer.ts';
import { checkShipped } from '../spec/shipped-schema.ts';

/** Changes nothing. `SPEC_INVALID` and `USAGE` for the file of the cluster; what is wrong with hosts is in the result. */
export const clusterPlan = useCase(CLUSTER_PLAN, async (request, context): Promise<PlannedCluster> => {
  const { force = false } = request;
  const out = request.out === undefined ? undefined : resolve(context.cwd, request.out);
  if (out !== undefined) await refuseExisting(out, force);
  const cluster = await readHosts(request, 'plan', context);
  const bundle = request.bundle === undefined ? undefined : await bundleFacts(request.bundle, cluster, context);
  await using files = await openAddons(request, context);
  const choices = { ...request, channels: channelsOf(files) };
  await using ssh: Ssh = openSsh(context.env);
  const plan = planOf(cluster, await lookAt(cluster, { ssh, bundle }, context), bundle, choices);
  if (out !== undefined) {
    const { digest, steps } = plan;
    const saved: SavedClusterPlan = { format: 1, cluster: cluster.name, digest, steps };
    await writeText(out, `${printableJson(saved, 1)}\n`, { force });
  }
  return plan;
});

/** `SPEC_INVALID` for a bundle without Kubernetes, and for settings of the cluster's file that its packages would refuse on a machine. */
export async function bundleFacts(
  path: string,
  { file, installer }: Pick<WrittenCluster, 'file' | 'installer'>,
  context: Context,
): Promise<BundleFacts> {
  const { digest, size, packages, files = [] } = await inspect({ path, files: true }, context);
  const kubernetes = packages.find(({ name }) => name === 'kubernetes');
  if (kubernetes === undefined) {
    throw new CurlewError('SPEC_INVALID', `cannot use ${path}: it has no package kubernetes`, {
      hint: 'add it to the spec of the bundle: curlew help cluster.md',
    });
  }
  const [wrong, ...more] = packages.flatMap((one) => wrongSettings(one, installer, file));
  if (wrong !== undefined) {
    const why = [wrong, ...more].map(({ message }) => message).join('; ');
    throw new CurlewError('SPEC_INVALID', `cannot use ${path} for ${file}: ${why}`, { hint: wrong.hint });
  }
  const arch = kubernetes.arch === 'arm64' ? 'aarch64' : 'x86_64';
  const ranges = packages.flatMap(({ name, version, kubernetesVersion: range }) =>
    range === undefined ? [] : [{ name, version, range }],
  );
  const images = imagesOf(packages, files);
  return { digest, size, arch, kubernetes: `v${kubernetes.version}`, images, ...(ranges.length > 0 && { ranges }) };
}

function imagesOf(
  packages: readonly InspectedPackage[],
  files: readonly Pick<PlacedEntry, 'path' | 'size' | 'digest'>[],
): NonNullable<BundleFacts['images']> {
  const counted = new Set<string>();
  return packages.map((one) => {
    const folder = `${prefixOf(refOf(one))}images/`;
    let bytes = 0;
    for (const { path, size, digest } of files) {
      if (!path.startsWith(folder) || counted.has(digest)) continue;
      counted.add(digest);
      bytes += size;
    }
    return { addon: one.name, imageFormat: one.imageFormat, bytes };
  });
}

/** The spec of the bundle may have what the file does not. */
function wrongSettings(
  { name, version, settings: schema }: InspectedPackage,
  installer: WrittenCluster['installer'],
  file: string,
): readonly Diagnostic[] {
  const { required: _, ...partial } = fieldsOf(schema);
  const place = { file, line: 1, column: 1, length: 1 };
  return Object.entries(installer).flatMap(([key, value]) => {
    if (folderName(key) !== name) return [];
    const own = Object.entries(fieldsOf(value)).filter(([field]) => field !== 'version' && field !== 's3Override');
    const settings = Object.fromEntries(own) as JsonObject;
    const addon = {
      specName: `spec.installer.${key}`,
      name,
      requested: version,
      s3Override: undefined,
      settings,
      place,
    };
    return checkShipped(addon, partial).filter(({ severity }) => severity === 'error');
  });
}
