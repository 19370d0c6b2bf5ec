/** Machines by the provider of docs/clusters-as-data.md, whose containers are real SSH servers on hosts with files of their own. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deleteCluster } from '../../src/app/cluster-delete.ts';
import { removeMachine } from '../../src/app/machine-remove.ts';
import { repairMachine } from '../../src/app/machine.ts';
import { command } from '../../src/cli/commands/cluster-delete.ts';
import type { AppliedCluster } from '../../src/machine/run/follow-plan.ts';
import { stringify } from 'yaml';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { dockerStandIn, type DockerStandIn } from '../support/docker-stand-in.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/provider-ssh', { timeoutMs: 240_000 });
const isRoot = process.getuid?.() === 0;
const needs = missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock', 'jq', 'pgrep', 'setsid');
const tests = unless(isRoot ? needs : 'needs root', test);

const PAGE = join(import.meta.dirname, '../../docs/clusters-as-data.md');
const LAB = { address: undefined, ssh: undefined, provider: { exec: 'lab', config: { image: 'lab-node:12' } } };
/** The bundle of the test has none. */
const KUBECONFIG = 'apiVersion: v1\nkind: Config\n';
const MACHINES = { p1: { role: 'control-plane', ...LAB }, p2: LAB };

interface Scene {
  readonly at: HostScene;
  readonly docker: DockerStandIn;
}

async function withLab(
  machines: Readonly<Record<string, object>>,
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  await using at = await hostScene();
  await using docker = await dockerStandIn(at.at());
  const [, program = ''] = /^```bash\n(#!.*?)^```$/ms.exec(await readFile(PAGE, 'utf8')) ?? [];
  await writeFile(at.at('curlew-lab'), program, { mode: 0o755 });
  await mkdir(at.at('.config/curlew'), { recursive: true });
  await writeFile(at.at('.config/curlew/config.json'), JSON.stringify({ providers: { lab: at.at('curlew-lab') } }));
  await at.write(machines);
  await work({ at, docker });
}

/** A line that the provider runs before anything else. */
async function first({ at }: Scene, line: string): Promise<void> {
  const path = at.at('curlew-lab');
  await writeFile(path, (await readFile(path, 'utf8')).replace('set -euo pipefail\n', `set -euo pipefail\n${line}\n`));
}

async function broken(at: HostScene, name: string): Promise<void> {
  const path = `${at.api}/node-${name}`;
  await writeFile(path, (await readFile(path, 'utf8')).replace('"ready":true', '"ready":false'));
}

function done({ done: steps }: Pick<AppliedCluster, 'done'>): readonly string[] {
  return steps.map(({ host, phase }) => `${host} ${phase}`);
}

/** All machines of the file become a cluster. */
async function make(at: HostScene): Promise<void> {
  const { failed, held, refused } = await at.apply();
  assert.equal([failed, held, refused], [[], [], []]);
}

tests('one file becomes machines and a cluster, and a second run changes nothing', async () => {
  await withLab(MACHINES, async ({ at, docker }) => {
    const applied = await at.apply();
    assert.equal([applied.failed, applied.held, applied.refused], [[], [], []]);
    assert.equal(done(applied), ['p1 create', 'p1 images', 'p1 init', 'p2 create', 'p2 images', 'p2 join']);
    assert.equal(await docker.containers(), ['curlew.paris.p1', 'curlew.paris.p2']);
    const again = await at.apply();
    assert.equal([again.done, again.steps, again.held, again.refused], [[], [], [], []]);
    assert.is(await docker.runs(), 2);
  });
});

tests('a creation whose operator is killed in the middle is found by its uid, and made no second time', async () => {
  await withLab(MACHINES, async (scene) => {
    const { at, docker } = scene;
    const operator = new AbortController();
    const stopped = at.at('stopped');
    // Between the creation and the next list.
    await first(scene, `if [ "$1" = list ] && [ -e ${stopped}-create ]; then touch ${stopped}; sleep 600; fi`);
    await first(scene, `if [ "$1" = create ]; then touch ${stopped}-create; fi`);
    const run = at.apply({ signal: operator.signal });
    await appears(stopped);
    operator.abort(new Error('gone'));
    assert.match(String(await run.catch((error: unknown) => error)), 'gone');
    await rm(`${stopped}-create`);
    await first(scene, `rm -f ${stopped}-create`);
    const applied = await at.apply();
    assert.equal([applied.failed, applied.steps], [[], []]);
    assert.equal(await docker.containers(), ['curlew.paris.p1', 'curlew.paris.p2']);
  });
});

tests('a provider that lists nothing gets no order to create what the cluster has', async () => {
  await withLab(MACHINES, async (scene) => {
    const { at, docker } = scene;
    await at.apply();
    await writeFile(at.at('paris.conf'), KUBECONFIG);
    await first(
      scene,
      `if [ "$1" = list ]; then echo '{"apiVersion":"provider.curlew.dev/v1","machines":[]}'; exit; fi`,
    );
    const applied = await at.apply();
    assert.equal([applied.done, applied.failed], [[], []]);
    assert.match(
      applied.refused[0]?.reason ?? '',
      /^its providers do not have all control planes, and by .*paris\.conf/,
    );
    assert.is(await docker.runs(), 2);
  });
});

tests('a lost worker waits, is created again by its repair, and is forgotten by its removal', async () => {
  await withLab(MACHINES, async ({ at, docker }) => {
    await make(at);
    docker.stop('curlew.paris.p2');
    await rm(at.at('lab/c/curlew.paris.p2'), { recursive: true });
    const lost = await at.apply();
    assert.equal(lost.done, []);
    assert.match(lost.held[0]?.reason ?? '', 'does not have it, and the cluster does: curlew machine repair');
    await broken(at, 'p2');
    const request = { file: 'paris.yaml', name: 'p2', bundle: 'b.tar.gz', yes: true };
    const repaired = await repairMachine(request, at.context);
    assert.equal(repaired.failed, []);
    assert.equal(done({ done: repaired.done ?? [] }), ['p2 mark', 'p2 create', 'p2 images', 'p2 join']);
    assert.equal(await docker.containers(), ['curlew.paris.p1', 'curlew.paris.p2']);
  });
});

tests('a worker that does not answer is deleted and created by its repair, once its node has left', async () => {
  await withLab(MACHINES, async ({ at, docker }) => {
    await make(at);
    docker.stop('curlew.paris.p2');
    const request = { file: 'paris.yaml', name: 'p2', bundle: 'b.tar.gz', yes: true };
    // What is healthy for the cluster is only away from here.
    assert.equal((await repairMachine(request, at.context)).done, []);
    await broken(at, 'p2');
    const repaired = await repairMachine(request, at.context);
    assert.equal([repaired.failed, repaired.steps], [[], []]);
    assert.equal(done({ done: repaired.done ?? [] }), ['p2 mark', 'p2 delete', 'p2 create', 'p2 images', 'p2 join']);
    assert.equal([await docker.containers(), await docker.runs()], [['curlew.paris.p1', 'curlew.paris.p2'], 3]);
    assert.equal((await repairMachine(request, at.context)).done, []);
  });
});

tests('a machine that is removed is deleted by its provider, also one that the file no longer has', async () => {
  await withLab({ ...MACHINES, p3: LAB }, async ({ at, docker }) => {
    await make(at);
    docker.stop('curlew.paris.p2');
    const file = JSON.parse(await readFile(at.at('paris.yaml'), 'utf8'));
    await writeFile(at.at('paris.yaml'), stringify(file));
    const request = { file: 'paris.yaml', name: 'p2', yes: true };
    const removed = await removeMachine(request, at.context);
    assert.equal([removed.failed, removed.change, removed.notes], [[], 'removed p2 from paris.yaml', []]);
    assert.equal(done({ done: removed.done ?? [] }), ['p2 mark', 'p2 delete']);
    assert.equal(await docker.containers(), ['curlew.paris.p1', 'curlew.paris.p3']);
    // A person takes p3 out of the file: it leaves the cluster, and stays.
    await at.write({ p1: MACHINES.p1 });
    const applied = await at.apply();
    assert.equal(done(applied), ['p3 mark']);
    assert.equal(
      applied.held.map(({ host }) => host),
      ['p3'],
    );
    const forgotten = await removeMachine({ ...request, name: 'p3' }, at.context);
    assert.equal(done({ done: forgotten.done ?? [] }), ['p3 delete']);
    assert.equal(await docker.containers(), ['curlew.paris.p1']);
    await assert.rejectsWith(
      removeMachine({ ...request, name: 'p3' }, at.context),
      'NOT_FOUND',
      /cannot remove p3: neither/,
    );
  });
});

tests(
  'the machines of a cluster that is deleted are deleted by their provider, whether they answer or not',
  async () => {
    await withLab(MACHINES, async ({ at, docker }) => {
      await make(at);
      await writeFile(at.at('paris.conf'), KUBECONFIG);
      docker.stop('curlew.paris.p2');
      const shown = await deleteCluster({ files: ['paris.yaml'] }, at.context);
      assert.equal([shown.left, shown.provided, shown.unreached, shown.refused], [['p2', 'p1'], ['p1', 'p2'], [], []]);
      const deleted = await deleteCluster({ files: ['paris.yaml'], confirm: 'paris' }, at.context);
      assert.equal([deleted.done, deleted.failed, deleted.left], [['p2', 'p1'], [], []]);
      assert.equal(await docker.containers(), []);
      assert.ok(!(await at.calls()).some((call) => call.startsWith('reset')));
      const again = await deleteCluster({ files: ['paris.yaml'], confirm: 'paris' }, at.context);
      assert.equal([again.done, again.left, command.exitCode?.(again)], [[], [], 0]);
    });
  },
);

/** Lets the provider call p2 outdated. */
async function callOutdated(scene: Scene): Promise<void> {
  const path = scene.at.at('curlew-lab');
  const outdated = '{uid: $uid} + (if env.OLD == $uid then {outdated: "it has another image"} else {} end) +';
  await writeFile(path, (await readFile(path, 'utf8')).replace('{uid: $uid} +', outdated));
  await first(scene, 'OLD=paris/p2; export OLD');
}

tests('a worker that its provider always calls outdated is made new once, and waits then', async () => {
  await withLab(MACHINES, async (scene) => {
    const { at, docker } = scene;
    await at.apply();
    await callOutdated(scene);
    const replaced = await at.apply();
    assert.equal(replaced.failed, []);
    assert.equal(done(replaced), ['p2 mark', 'p2 delete', 'p2 create', 'p2 images', 'p2 join']);
    assert.match(
      replaced.held[0]?.reason ?? '',
      /^the provider lab still calls it outdated after it was made new at 20\S+Z: it has another image: correct \S+curlew-lab$/,
    );
    const again = await at.apply();
    assert.equal([again.done, again.held.length, await docker.runs()], [[], 1, 3]);
  });
});

tests(
  'what a provider says only after it has made a machine, or in words that change, ends with one new machine',
  async () => {
    await withLab(MACHINES, async (scene) => {
      const { at, docker } = scene;
      await callOutdated(scene);
      const path = at.at('curlew-lab');
      const lists = at.at('lists');
      // The first list after a creation ends that.
      const late = `if [ "$1" = create ]; then : >'${lists}'; else echo >>'${lists}'; fi
if [ "$(wc -l <'${lists}')" -gt 1 ]; then OLD=paris/p2; else OLD=; fi;`;
      await writeFile(path, (await readFile(path, 'utf8')).replace('OLD=paris/p2;', late));
      const applied = await at.apply();
      assert.equal([applied.failed, applied.steps], [[], []]);
      assert.equal(done(applied), ['p1 create', 'p1 images', 'p1 init', 'p2 create', 'p2 images', 'p2 join']);
      const again = await at.apply();
      assert.equal([again.done, again.held.map(({ host }) => host), await docker.runs()], [[], ['p2'], 2]);
      await writeFile(
        path,
        (await readFile(path, 'utf8')).replace('"it has another image"', String.raw`"image \(now)"`),
      );
      const changing = await at.apply();
      assert.equal([changing.failed, changing.steps], [[], []]);
      assert.equal(done(changing), ['p2 mark', 'p2 delete', 'p2 create', 'p2 images', 'p2 join']);
      assert.match(
        changing.held.map(({ reason }) => reason).join(),
        /^the provider lab still calls it outdated after it was made new just now: image /,
      );
    });
  },
);

tests('a worker that its provider calls outdated is replaced, and with InPlaceOnly it waits', async () => {
  await withLab({ ...MACHINES, p2: { ...LAB, update: 'InPlaceOnly' } }, async (scene) => {
    const { at, docker } = scene;
    await at.apply();
    await callOutdated(scene);
    const old = at.at('old');
    await first(scene, `if [ "$1" = create ]; then rm '${old}'; fi`);
    const path = at.at('curlew-lab');
    await writeFile(
      path,
      (await readFile(path, 'utf8')).replace('OLD=paris/p2;', `OLD=$(cat '${old}' 2>/dev/null) || OLD=;`),
    );
    await writeFile(old, 'paris/p2');
    const kept = await at.apply();
    assert.equal([kept.done, kept.held[0]?.host], [[], 'p2']);
    await at.write(MACHINES);
    const replaced = await at.apply();
    assert.equal([replaced.failed, replaced.steps, replaced.held], [[], [], []]);
    assert.equal(done(replaced), ['p2 mark', 'p2 delete', 'p2 create', 'p2 images', 'p2 join']);
    assert.is(await docker.runs(), 3);
  });
});

test.run();
