/** Finds out what works on this machine, and how to get the rest. Changes nothing. */
import { statfs } from 'node:fs/promises';
import { platform } from 'node:os';
import { dirname, resolve } from 'node:path';
import { connectDocker } from '../build/containers/docker.ts';
import { asError, CurlewError, redact } from '../core/errors.ts';
import type { Context } from '../core/context.ts';
import type { Arch } from '../core/ref.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { useCase, type RequestOf } from '../core/request.ts';
import { formatBytes } from '../core/units.ts';
import { openChannelCluster } from '../cluster/deliver/channel-cluster.ts';
import { ownPages, ownScripts } from '../own/scripts.ts';
import { LimitExceeded, within } from '../platform/limit/within.ts';
import { RETRY_POLICY } from '../platform/http/retry.ts';
import { readDockerConfig } from '../build/registry/credentials.ts';
import { HOST_ARCH } from '../runtime/images/required-images.ts';
import { whyNoSandbox } from '../runtime/hooks/confine.ts';
import { findImageRuntime } from '../runtime/images/find-runtime.ts';
import { currentRelease } from '../ship/store/read-catalog.ts';
import { readConfig, cacheFolder } from '../steps/open/config.ts';
import { bundleArches, findExecutable, type BundleArches } from '../steps/open/executables.ts';
import { lazyHttp } from '../steps/open/network.ts';
import { hostArch } from '../steps/sources/run-source.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { DOCTOR } from '../requests/own.ts';

type DoctorRequest = RequestOf<typeof DOCTOR.fields>;
type Asked = NonNullable<DoctorRequest['commands']>[number];

export interface DoctorFinding {
  readonly check: string;
  /** `fail`: something that was asked for cannot work. */
  readonly verdict: 'pass' | 'warn' | 'fail';
  readonly message: string;
  /** Its purpose, and how to get it; for all but `pass`. */
  readonly hint?: string;
}

interface Check {
  readonly name: string;
  /** Commands that cannot work without it. */
  readonly needed: readonly Asked[];
  readonly use: string;
  /** Nodes do not have the commands that need it. */
  readonly forBuilders?: true;
  /** How to get it, if the error does not say. */
  readonly how: string;
  /** The result, with a hint if part of it is missing; throws if nothing works. */
  readonly look: (request: DoctorRequest, context: Context) => Promise<string | BundleArches>;
}

const GIGABYTE = 1 << 30;
/** Milliseconds until a check counts as failed. */
const LIMIT = 5000;
/** So few attempts end within the limit, with the reason. */
const RETRY = { ...RETRY_POLICY, attempts: 2 };

const CHECKS: readonly Check[] = [
  {
    name: 'configuration',
    needed: ['build', 'publish', 'bundle'],
    use: 'every command reads it',
    how: 'see curlew help configuration',
    look: async ({ config }, { env, cwd }) => {
      await readConfig(config, { env, cwd });
      return 'the configuration file is valid, or there is none';
    },
  },
  {
    name: 'executables',
    needed: ['bundle'],
    use: 'bundles contain them',
    forBuilders: true,
    how: 'see curlew help install.md',
    look: async (request, context) => bundleArches(HOST_ARCH, async (arch) => findExecutable(arch, request, context)),
  },
  {
    name: 'Docker engine',
    needed: [],
    use: 'builds use it for Dockerfiles and host packages',
    forBuilders: true,
    how: 'start Docker, or set DOCKER_HOST',
    look: async (_, { env, signal }) => {
      const asked = { doing: 'ask the Docker engine', method: 'GET', path: '/version' } as const;
      const { value } = await connectDocker(env).request(asked, { signal });
      const { Version: version } = (value ?? {}) as { readonly Version?: unknown };
      return typeof version === 'string' ? `Docker ${version} responds` : 'it responds';
    },
  },
  {
    name: 'registries',
    needed: ['build', 'publish'],
    use: 'builds pull images with them',
    forBuilders: true,
    how: 'docker login writes the file again',
    look: async (_, { env }) => {
      const { auths, helpers, store } = await readDockerConfig(env);
      const hosts = [...new Set([...auths.keys(), ...helpers.keys()])];
      if (store !== undefined) hosts.push(`others from docker-credential-${store}`);
      return hosts.length === 0
        ? 'no credentials: images are pulled anonymously'
        : `credentials for ${hosts.join(', ')}`;
    },
  },
  {
    name: 'cache',
    needed: ['build', 'publish'],
    use: 'builds keep downloads there',
    forBuilders: true,
    how: 'free some space, or use --cache DIR',
    look: async (_, { env }) => freeIn(cacheFolder(env)),
  },
  {
    name: 'store',
    needed: ['publish', 'bundle'],
    use: 'releases are there',
    how: 'check its address, and whether its server is up and can be reached from here',
    look: async (request, context) => {
      await using web = lazyHttp(request, context, RETRY);
      const { attempts } = RETRY;
      const store = await openStoreFor(request.from ?? '', request, context, {
        create: false,
        http: web.get,
        attempts,
      });
      const current = await currentRelease(store, context);
      return `${store.address} responds, ${current === undefined ? 'and has no release' : `current is ${current.release}`}`;
    },
  },
  {
    name: 'user',
    needed: ['install'],
    use: 'install changes this machine',
    how: 'run it as root; trials with --root DIR work as any user',
    look: async (_, { user }) => {
      if (user !== 0) throw new CurlewError('UNSUPPORTED', 'not root');
      return Promise.resolve('root: hooks can change this machine');
    },
  },
  {
    name: 'architecture',
    needed: ['install'],
    use: 'install needs one that packages are for',
    how: 'install on a machine with another one',
    look: async () => Promise.resolve(installableText(hostArch(), platform())),
  },
  {
    name: 'trials',
    needed: [],
    use: 'dev, and runs with --root DIR, need a sandbox',
    how: 'install util-linux 2.32 or newer, findutils, and iproute2, which trials with --kubeconfig do without, and run it outside of a chroot; see curlew help trials.md',
    look: async (_, { env, signal }) => {
      const missing = await whyNoSandbox({ scripts: ownScripts(), env, signal });
      if (missing !== undefined) throw new CurlewError('UNSUPPORTED', missing);
      return 'hooks can run in a sandbox';
    },
  },
  {
    name: 'install folder',
    needed: ['install'],
    use: 'nodes keep packages there',
    how: 'free some space, or use --install-dir DIR',
    look: async ({ installDir = INSTALL_DIRECTORY }, { cwd }) => freeIn(resolve(cwd, installDir)),
  },
  {
    name: 'container runtime',
    needed: ['load-images'],
    use: 'load-images, and specs without a runtime, need it',
    how: 'start containerd or Docker, or set CONTAINERD_ADDRESS',
    look: async (_, { env, signal }) => {
      const runtime = await findImageRuntime({ env, signal });
      if (runtime === undefined) throw new CurlewError('NOT_FOUND', 'neither containerd nor Docker responds');
      return `${runtime.name} responds`;
    },
  },
  {
    name: 'cluster',
    needed: ['channel', 'fleet'],
    use: 'channel and fleet need it',
    how: 'set KUBECONFIG to the kubeconfig of a cluster',
    look: async (request, context) => {
      const { server, kubernetes } = await openChannelCluster(request, context);
      return `Kubernetes ${kubernetes} at ${redact(server)}`;
    },
  },
];

/** The findings of its checks, in the order of the table. A check fails only if a named command, or the store, needs it. */
export const doctor = useCase(DOCTOR, async (request, context): Promise<readonly DoctorFinding[]> =>
  Promise.all(checksFor(request).map(async (check) => findingOf(check, request, context))),
);

/** The checks of a request. On a node, where no pages are, what only builders need is left out unless one of its commands is named. */
export function checksFor(
  { from, commands = [] }: DoctorRequest,
  hasPages = ownPages() !== undefined,
): readonly Check[] {
  return CHECKS.filter(({ name, needed, forBuilders = false }) => {
    if (name === 'store') return from !== undefined;
    return hasPages || !forBuilders || needed.some((command) => commands.includes(command));
  });
}

async function findingOf(check: Check, request: DoctorRequest, context: Context): Promise<DoctorFinding> {
  const { name, needed, use, how, look } = check;
  let note: string | undefined;
  // What is slow says so, with the reason.
  const report: Context['report'] = (event) => {
    if (event.type === 'note' && event.level === 'info') note = event.text;
    else context.report(event);
  };
  try {
    // Also ends a wait for what does not observe its signal, such as a disk that does not respond.
    const result = await within(LIMIT, async ({ signal }) => look(request, { ...context, report, signal }), context);
    const { message, hint } = typeof result === 'string' ? { message: result, hint: undefined } : result;
    if (hint === undefined) return { check: name, verdict: 'pass', message };
    return { check: name, verdict: 'warn', message, hint: redact(`${use}: ${hint}`) };
  } catch (thrown) {
    context.signal.throwIfAborted();
    const isNeeded = name === 'store' || (request.commands ?? []).some((command) => needed.includes(command));
    const late = `no answer within ${LIMIT / 1000} seconds${note === undefined ? '' : `: ${note}`}`;
    const why = thrown instanceof LimitExceeded ? late : asError(thrown).message;
    const more = thrown instanceof CurlewError ? thrown.hint : undefined;
    return {
      check: name,
      verdict: isNeeded ? 'fail' : 'warn',
      message: redact(why),
      hint: redact(`${use}: ${more ?? how}`),
    };
  }
}

/** Whether there are packages for this architecture is known only of a bundle or a store. */
export function installableText(arch: Arch, system: NodeJS.Platform): string {
  return system === 'linux'
    ? `packages for ${arch} can be installed`
    : `this machine is ${arch}, but packages are installed on Linux`;
}

/** The free space of the disk of a folder that may not exist yet. */
async function freeIn(folder: string): Promise<string> {
  const stats = await statfs(folder).catch(() => undefined);
  if (stats === undefined && folder !== '/') return freeIn(dirname(folder));
  const free = stats === undefined ? 0 : stats.bavail * stats.bsize;
  const text = `${formatBytes(free)} free in ${folder}`;
  if (free < GIGABYTE) throw new CurlewError('NO_SPACE', text);
  return text;
}
