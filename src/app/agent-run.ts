/** The agent of a cluster: delivers what its hub has for it, and reports. */
import { join, resolve } from 'node:path';
import { AgentFolder } from '../fleet/agent/folder.ts';
import { AddonCertificates } from '../fleet/agent/addon-certificates.ts';
import { renewIfDue } from '../fleet/agent/certificate.ts';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import { openApi } from '../cluster/kube/api.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import { runLoop, type Packages } from '../fleet/agent/run/loop.ts';
import { AGENT_RUN, type AgentRunRequest } from '../requests/agent.ts';

/**
 * Until the signal aborts, whose reason it throws, or its program is another one. `NOT_FOUND` for a site that is not registered, `BUSY` while another agent of this
 * folder runs.
 */
export const runAgent = useCase(AGENT_RUN, async (request, context): Promise<void> => {
  const root = request.root === undefined ? undefined : resolve(context.cwd, request.root);
  const folder = new AgentFolder(root);
  const { cluster, hub, keys, allowUnsigned } = await folder.read();
  const hubApi = await openApi({ env: { ...context.env, KUBECONFIG: folder.kubeconfig }, isForeign: true });
  if (hubApi === undefined) throw new CurlewError('NOT_FOUND', `cannot read ${folder.kubeconfig}: no such file`);
  const { api } = await openClusterApi(request, context);
  const paths: string[] = [];
  await makeFolder(join(folder.path, 'keys'));
  for (const { key } of allowUnsigned ? [] : keys) {
    const path = join(folder.path, 'keys', `${paths.length}.pem`);
    await writeStateFile(path, key.export({ type: 'spki', format: 'pem' }));
    paths.push(path);
  }
  return runLoop({
    request,
    context,
    cluster,
    hub,
    keys,
    allowUnsigned,
    folder: folder.path,
    hubApi,
    api,
    packages: packagesOf({ ...request, root }, context, allowUnsigned ? undefined : paths),
    certificates: new AddonCertificates({
      cluster,
      hubApi,
      api,
      hub: async () => (await folder.readKubeconfig())?.hub,
    }),
    renew: async () => renewIfDue(folder, { api: hubApi, signal: context.signal }),
  });
});

/** Packages come as `curlew install --from` brings them, also after an interruption. Without `keys`, unsigned ones are accepted. */
function packagesOf(request: AgentRunRequest, context: Context, keys: readonly string[] | undefined): Packages {
  const {
    from = [],
    root,
    kubeconfig,
    context: kubeContext,
    acceptOlder: _older,
    delay: _delay,
    metrics: _metrics,
    wait: _wait,
    helm: _helm,
    ...web
  } = request;
  const trial = root === undefined ? {} : { root, kubeconfig, context: kubeContext };
  return {
    has: async (name) => {
      const [{ placesOf }, { readRecords }] = await Promise.all([
        import('../steps/node/target.ts'),
        import('../runtime/node/records.ts'),
      ]);
      const { applied } = await readRecords(placesOf(trial, context).directory);
      return Object.hasOwn(applied, name);
    },
    install: async ({ name, version, hash }, settings, { isBack }) => {
      const spec = { [name]: { ...settings, version } };
      const head = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', metadata: { name: 'fleet' } };
      // An agent stays, and most have no package: what installs one takes a third of its memory.
      const { install } = await import('./install.ts');
      await install(
        {
          ...web,
          ...trial,
          kind: 'install',
          from,
          ...(keys && { key: keys, requireSigned: true }),
          installerText: JSON.stringify({ ...head, spec }),
          digest: hash,
          allowDowngrade: isBack,
          yes: true,
        },
        context,
      );
    },
    health: async (name) => {
      const { healthByHook } = await import('../steps/node/health-hook.ts');
      return healthByHook(name, trial, context);
    },
    remove: async (name, { keepGoing }) => {
      const { uninstall } = await import('./uninstall.ts');
      try {
        await uninstall({ ...trial, addons: [name], keepGoing, yes: true }, context);
      } catch (error) {
        if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
      }
    },
  };
}
