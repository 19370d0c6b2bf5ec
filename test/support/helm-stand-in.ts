/**
 * A program in the place of helm 4: a chart is a file of objects in JSON, and a release what helm makes of it in the cluster. The real
 * programs are in test/components.
 */
import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { gunzipSync, gzipSync } from 'node:zlib';
import { at, textAt, type ApiClient } from './api-client.ts';
import type { JsonObject } from './api-server/fields.ts';
import type { Tree } from './tree.ts';

export interface HelmStandIn extends AsyncDisposable {
  /** Path of the program. */
  readonly program: string;
  /** The commands so far: `upgrade web`. */
  readonly commands: readonly string[];
  /** The files of values that the last upgrade got. */
  readonly values: () => readonly unknown[];
  /** Before each command, with its name and release: what it throws is what helm reports. */
  readonly before: (hook: ((command: string) => void | Promise<void>) | undefined) => void;
}

interface Revision {
  readonly version: number;
  readonly status: string;
  readonly objects: readonly JsonObject[];
}

const PATHS: Readonly<Record<string, string>> = {
  ConfigMap: '/api/v1/namespaces/default/configmaps',
  Deployment: '/apis/apps/v1/namespaces/default/deployments',
};
const SECRETS = '/api/v1/namespaces/default/secrets';

/** Asks the process of the test, which has the API server, too: its arguments are lines, and an empty one is the last. */
const PROGRAM = (port: number): string => `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/${port}
printf '%s\\n' "$@" '' >&3
read -r status <&3
if [ "$status" = 0 ]; then cat <&3; else { printf 'Error: '; cat <&3; echo; } >&2; fi
exit "$status"
`;

/** A program that downloads every chart from a file of objects, and leaves the rest to the stand-in. Appends to `access` what downloads were given; `chart` is the file. */
export async function helmWithRepository(
  { program }: Pick<HelmStandIn, 'program'>,
  box: Tree,
  objects: readonly object[],
): Promise<{ readonly program: string; readonly access: string; readonly chart: string }> {
  const [chart, access, own] = ['chart-of-repository', 'access', 'helm-of-repository'].map((name) => box.at(name)) as [
    string,
    string,
    string,
  ];
  await writeFile(chart, JSON.stringify(objects));
  const text = `#!/bin/bash
if [ "$1" = pull ]; then
  while [ "$1" != --destination ]; do
    case "$1" in --registry-config | --ca-file) cat "$2" >>'${access}' ;; --insecure*) echo "$1" >>'${access}' ;; esac
    shift
  done
  exec cp '${chart}' "$2/page-1.0.0.tgz"
fi
exec '${program}' "$@"
`;
  await writeFile(own, text);
  await chmod(own, 0o755);
  return { program: own, access, chart };
}

/** The program, with a list of its runs by their first argument. */
export async function countedHelm(
  program: string,
  box: Tree,
): Promise<{ readonly program: string; readonly runs: () => Promise<readonly string[]> }> {
  const [own, runs] = [box.at('helm-counted'), box.at('helm-runs')];
  await writeFile(runs, '');
  await writeFile(own, `#!/bin/bash\necho "$1" >>'${runs}'\nexec '${program}' "$@"\n`);
  await chmod(own, 0o755);
  return { program: own, runs: async () => (await readFile(runs, 'utf8')).split('\n').slice(0, -1) };
}

export async function startHelm(api: ApiClient, box: Tree): Promise<HelmStandIn> {
  const commands: string[] = [];
  let values: readonly unknown[] = [];
  let before: ((command: string) => void | Promise<void>) | undefined;
  const answer = async (args: readonly string[]): Promise<string> => {
    const [command = ''] = args;
    if (command === 'version') return 'v4.0.0';
    const name = args.find((one, at_) => at_ > 0 && one !== '--install') ?? '';
    const said = args.includes('--dry-run=server') ? `render ${name}` : `${command} ${name}`;
    commands.push(said);
    const files = args.filter((_, at_) => args[at_ - 1] === '--values');
    if (command === 'upgrade')
      values = await Promise.all(files.map(async (file) => JSON.parse(await readFile(file, 'utf8')) as unknown));
    await before?.(said);
    const release = new Release(api, name);
    if (command === 'upgrade') return release.upgrade(args);
    if (command === 'uninstall') return release.uninstall();
    if (command === 'rollback') return release.rollback(Number(args[2]));
    throw new Error(`unknown command "${command}"`);
  };
  const server = createServer((socket) => {
    const args: string[] = [];
    const lines = createInterface({ input: socket });
    const reply = async (): Promise<void> => {
      try {
        socket.end(`0\n${await answer(args)}`);
      } catch (error) {
        socket.end(`1\n${error instanceof Error ? error.message : String(error)}`);
      }
    };
    lines.on('line', (line) => void (line === '' ? reply() : args.push(line)));
    // A program that was killed does not read the answer; the interface emits the socket's error anew.
    socket.on('error', () => lines.close());
    lines.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await writeFile(box.at('helm'), PROGRAM((server.address() as AddressInfo).port));
  await chmod(box.at('helm'), 0o755);
  return {
    program: box.at('helm'),
    commands,
    values: () => values,
    before: (hook) => (before = hook),
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

class Release {
  readonly #api: ApiClient;
  readonly #name: string;
  constructor(api: ApiClient, name: string) {
    this.#api = api;
    this.#name = name;
  }

  async #revisions(): Promise<readonly Revision[]> {
    const { body } = await this.#api.get(`${SECRETS}?labelSelector=owner=helm,name=${this.#name}`);
    const revisions = (at(body, 'items') as readonly JsonObject[]).map((secret): Revision => {
      const bytes = Buffer.from(Buffer.from(textAt(secret, 'data.release'), 'base64').toString(), 'base64');
      const manifest = textAt(JSON.parse(gunzipSync(bytes).toString()), 'manifest');
      const objects = manifest.split('\n---\n').flatMap((one) => (one === '' ? [] : [JSON.parse(one) as JsonObject]));
      return {
        version: Number(at(secret, 'metadata.labels.version')),
        status: textAt(secret, 'metadata.labels.status'),
        objects,
      };
    });
    return revisions.toSorted((one, other) => one.version - other.version);
  }

  async #last(): Promise<Revision> {
    const last = (await this.#revisions()).at(-1);
    if (last === undefined) throw new Error('release: not found');
    return last;
  }

  async #write({ version, status, objects }: Revision): Promise<void> {
    const name = `sh.helm.release.v1.${this.#name}.v${version}`;
    const labels = { owner: 'helm', name: this.#name, version: String(version), status };
    const content = {
      name: this.#name,
      version,
      chart: { metadata: { name: this.#name, version: '1.0.0' } },
      manifest: manifestOf(objects),
    };
    const text = gzipSync(JSON.stringify(content)).toString('base64');
    const data = { release: Buffer.from(text).toString('base64') };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default', labels }, data };
    await this.#api.apply(`${SECRETS}/${name}`, secret, 'helm');
  }

  async upgrade(args: readonly string[]): Promise<string> {
    const objects = JSON.parse(await readFile(args[3] ?? '', 'utf8')) as readonly JsonObject[];
    if (args.includes('--dry-run=server')) return JSON.stringify({ manifest: manifestOf(objects) });
    await this.#install(objects);
    return '';
  }

  async #install(objects: readonly JsonObject[]): Promise<void> {
    const before = await this.#revisions();
    const deployed = before.findLast(({ status }) => status === 'deployed');
    const version = (before.at(-1)?.version ?? 0) + 1;
    await this.#write({ version, status: before.length === 0 ? 'pending-install' : 'pending-upgrade', objects });
    for (const one of objects) {
      const own = { 'meta.helm.sh/release-name': this.#name, 'meta.helm.sh/release-namespace': 'default' };
      const metadata = at(one, 'metadata') as { readonly annotations?: object };
      const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
      const whole = { ...one, metadata: { ...metadata, labels, annotations: { ...metadata.annotations, ...own } } };
      const { status, body } = await this.#api.apply(pathOf(one), whole, 'helm', '&force=true');
      if (status < 400) continue;
      await this.#write({ version, status: 'failed', objects });
      throw new Error(`UPGRADE FAILED: ${textAt(body, 'message')}`);
    }
    const paths = new Set(objects.map(pathOf));
    await this.#delete((deployed?.objects ?? []).filter((one) => !paths.has(pathOf(one))));
    if (deployed !== undefined) await this.#write({ ...deployed, status: 'superseded' });
    await this.#write({ version, status: 'deployed', objects });
  }

  async #delete(objects: readonly JsonObject[]): Promise<void> {
    for (const one of objects) {
      const annotations = at(one, 'metadata.annotations') as JsonObject | undefined;
      if (annotations?.['helm.sh/resource-policy'] !== 'keep') await this.#api.remove(pathOf(one));
    }
  }

  async rollback(version: number): Promise<string> {
    const target = (await this.#revisions()).find((one) => one.version === version);
    await this.#install(target?.objects ?? []);
    return '';
  }

  async uninstall(): Promise<string> {
    await this.#delete((await this.#last()).objects);
    for (const { version } of await this.#revisions())
      await this.#api.remove(`${SECRETS}/sh.helm.release.v1.${this.#name}.v${version}`);
    return '';
  }
}

function manifestOf(objects: readonly JsonObject[]): string {
  return objects.map((one) => JSON.stringify(one)).join('\n---\n');
}

function pathOf(object: JsonObject): string {
  return `${PATHS[textAt(object, 'kind')]}/${textAt(object, 'metadata.name')}`;
}
