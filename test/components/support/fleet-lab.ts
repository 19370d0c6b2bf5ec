/** A hub and clusters as real API servers below one folder, and the commands of their people, run there as they type them. */
import { execa } from 'execa';
import { copyFile, readFile, symlink, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { readPrivateKey } from '../../../src/formats/signing/keys.ts';
import { signText } from '../../../src/formats/signing/signature.ts';
import { cleanEnvironment } from '../../support/curlew.ts';
import { hubCluster } from '../../support/hub-objects.ts';
import { eventually } from '../../support/hub-scene.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree, writeTree, type Tree } from '../../support/tree.ts';
import { startServer } from '../../support/web-server.ts';
import { startApiServer, type ApiServer } from './api-server.ts';
import { makeClientAuthority } from './client-authority.ts';
import { createOpened } from './opened.ts';
import { oracle, ROOT } from './programs.ts';

export const HELM: string = `${ROOT}/.curlew/tools/helm-4/helm`;

export interface Running {
  /** What it has printed so far. */
  readonly said: () => string;
  /** Ends it at once, as a power cut does. */
  readonly kill: () => Promise<void>;
}

export interface FleetLab extends AsyncDisposable {
  readonly box: Tree;
  readonly hub: ApiServer;
  readonly clusters: ReadonlyMap<string, ApiServer>;
  /** Runs a line of bash, whose output it returns; a line that ends with another status throws. */
  readonly run: (line: string, status?: number) => Promise<string>;
  /** Starts a command, in the background. */
  readonly start: (line: string) => Running;
  /** Registers the agent of a cluster, and accepts it. */
  readonly register: (cluster: string) => Promise<void>;
  readonly startAgent: (cluster: string) => Running;
  /** A controller with the account of the manifests. */
  readonly startController: () => Promise<Running>;
  /** Gives the hub the kubeconfig `NAME.conf` of a cluster, to deliver to it. */
  readonly push: (cluster: string, labels: object) => Promise<void>;
  /** Serves a file under this name, with a signature. */
  readonly publish: (name: string, content: string | Buffer) => { readonly url: string; readonly hash: string };
  /** Waits until a line prints this; the last output is in the error of a caller who gives up. */
  readonly becomes: (line: string, expected: string) => Promise<void>;
}

export interface LabOptions {
  /** The command under test. */
  readonly main: string;
  readonly clusters: readonly string[];
  /** Sees each command, and its output when it has ended. */
  readonly onCommand?: (line: string, output?: string) => void;
}

/** `hub.conf` and `NAME.conf` are kubeconfigs of administrators in its folder, and KUBECONFIG is the first of them. */
export async function openFleetLab({ main, clusters: names, onCommand }: LabOptions): Promise<FleetLab> {
  const opened = createOpened();
  try {
    return await open(opened, { main, names, onCommand });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function open(
  opened: ReturnType<typeof createOpened>,
  { main, names, onCommand }: { main: string; names: readonly string[]; onCommand: LabOptions['onCommand'] },
): Promise<FleetLab> {
  const box = opened.keep(await tree());
  await writeTree(box.path, { 'bin/curlew': `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n` });
  await symlink(oracle('../api-server/kubectl'), box.at('bin/kubectl'));
  await symlink(HELM, box.at('bin/helm'));
  const env = { PATH: `${box.at('bin')}:${process.env['PATH']}`, KUBECONFIG: box.at('hub.conf') };
  const shown = { cwd: box.path, env: cleanEnvironment({ cwd: box.path, env }), extendEnv: false, all: true } as const;
  const execute = async (line: string, status = 0): Promise<string> => {
    const { exitCode, all } = await execa('bash', ['-euo', 'pipefail', '-c', line], {
      ...shown,
      stdin: 'ignore',
      reject: false,
    });
    if (exitCode !== status) throw new Error(`${line}\nended with ${exitCode}, not ${status}:\n${all}`);
    return all;
  };
  const run: FleetLab['run'] = async (line, status) => {
    onCommand?.(line);
    const output = await execute(line, status);
    onCommand?.(line, output);
    return output;
  };
  const start: FleetLab['start'] = (line) => {
    onCommand?.(`${line} &`);
    const one = execa('bash', ['-c', `exec ${line}`], { ...shown, stdin: 'ignore', reject: false, buffer: false });
    let said = '';
    one.all.on('data', (part: Buffer) => (said += part.toString()));
    const kill = async (): Promise<void> => {
      one.kill('SIGKILL');
      await one;
    };
    opened.keep({ [Symbol.asyncDispose]: kill });
    return { said: () => said, kill };
  };
  const authority = await makeClientAuthority(box.at('hub'));
  const [hub, ...own] = await Promise.all([
    startApiServer(box.at('hub'), { options: authority.options }),
    ...names.map(async (name) => startApiServer(box.at(`${name}-server`))),
  ]);
  for (const one of [hub, ...own]) opened.keep(one);
  opened.keep(await authority.startSigner(hub.kubeconfig));
  for (const [index, name] of ['hub', ...names].entries())
    await copyFile([hub, ...own][index]?.kubeconfig ?? '', box.at(`${name}.conf`));
  const certificate = await makeCertificate();
  await writeFile(box.at('ca.pem'), certificate.ca);
  const files = new Map<string, Buffer | string>();
  const web = opened.keep(
    await startServer(
      ({ path }) => {
        const body = files.get(path);
        return body === undefined ? { status: 404 } : { status: 200, body };
      },
      { tls: certificate },
    ),
  );
  await run('curlew keygen our');
  const key = readPrivateKey(await readFile(box.at('our.key'), 'utf8'), 'our.key', undefined);
  await run('curlew hub manifests | kubectl apply -f -');
  await execute('kubectl wait --for=condition=Established crd --all --timeout=60s');
  const startAgent: FleetLab['startAgent'] = (cluster) =>
    start(`curlew agent run --root ${cluster} --kubeconfig ${cluster}.conf --ca-file ca.pem --delay 1s --wait 20s`);
  return {
    box,
    hub,
    clusters: new Map(own.map((one, index) => [names[index] ?? '', one])),
    run,
    start,
    startAgent,
    startController: async () => {
      const credentials =
        'config set-credentials admin --token="$(kubectl create token curlew-controller -n curlew-system)"';
      await run(`cp hub.conf controller.conf && kubectl --kubeconfig controller.conf ${credentials}`);
      return start('curlew controller --kubeconfig controller.conf --ca-file ca.pem');
    },
    register: async (cluster) => {
      await run(`curlew hub token ${cluster}`);
      const site = start(`curlew agent register --token-file ${cluster}.token --key our.pub --root ${cluster}`);
      const fingerprint = (): string | undefined => /SHA256:[\w+/=]+/.exec(site.said())?.[0];
      await eventually(() => fingerprint() !== undefined);
      await run(`curlew fleet accept ${cluster} --fingerprint ${fingerprint()} --yes`);
      await eventually(() => site.said().includes('registered'));
    },
    push: async (cluster, labels) => {
      const object = hubCluster(cluster, labels, { access: { kubeconfigSecret: 'access' } });
      await writeFile(box.at(`${cluster}.json`), JSON.stringify(object));
      await run(`curlew hub manifests --push ${cluster} | kubectl apply -f -`);
      await run(`kubectl create secret generic access -n fleet-${cluster} --from-file=value=${cluster}.conf`);
      await run(`kubectl apply -f ${cluster}.json`);
    },
    publish: (name, content) => {
      files.set(`/${name}`, content);
      files.set(`/${name}.sigstore.json`, signText(Buffer.from(content), key));
      return { url: `${web.url}/${name}`, hash: digestOf(content) };
    },
    becomes: async (line, expected) => {
      let last = '';
      await eventually(async () => (last = await execute(line)).trim() === expected).catch((error: unknown) => {
        throw new Error(`${line}\nprints ${last}, not ${expected}`, { cause: error });
      });
    },
    [Symbol.asyncDispose]: opened.close,
  };
}
