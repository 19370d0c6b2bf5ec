/** What a host says that does not run on it, by its own programs. */
import { brokenScript } from '../../src/machine/facts.ts';
import { lostQuorum } from '../../src/machine/etcd.ts';
import { runProgram } from '../../src/platform/process/run-program.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

const test = suite('machine/broken');
const NODE = {
  'etc/kubernetes/kubelet.conf': '',
  'run/systemd/system/x': '',
  'etc/cni/net.d/10-flannel.conflist': '',
};
const CONTROL = {
  ...NODE,
  'etc/kubernetes/pki/apiserver.crt': '',
  'etc/kubernetes/pki/etcd/server.crt': '',
  'etc/kubernetes/manifests/etcd.yaml': '',
  'etc/kubernetes/manifests/kube-apiserver.yaml': '',
  'etc/kubernetes/manifests/kube-scheduler.yaml': '',
};
/** Containers 1 and 2 are those of etcd and of the API server; 2 has ended. */
const CTR = `#!/bin/sh
case "$*" in
  *'tasks list') printf 'TASK PID STATUS\\n1 10 RUNNING\\n2 11 STOPPED\\n3 12 RUNNING\\n';;
  *'name"==etcd,'*) echo 1;;
  *'name"==kube-apiserver,'*) echo 2;;
  *'name"==kube-scheduler,'*) echo 3;;
esac
`;

async function saysOf(files: Files, { units = 'kubelet containerd', ctr = CTR } = {}): Promise<string> {
  await using box = await tree({
    ...files,
    'bin/systemctl': `#!/bin/sh\ncase "$1 ${units} " in cat*) exit 0;; *" $3 "*) exit 0;; esac\nexit 3\n`,
    'bin/ctr': ctr,
  });
  const env = { PATH: `${box.at('bin')}:${process.env['PATH']}` };
  const { stdout } = await runProgram('sh', ['-c', brokenScript(box.path)], { env, signal: never });
  return stdout.replaceAll(box.path, '');
}

test('a host names what does not run of a node and of a control plane', async () => {
  assert.is(await saysOf(NODE), '');
  assert.is(await saysOf(NODE, { units: 'containerd' }), 'the kubelet does not run; ');
  assert.is(await saysOf(NODE, { ctr: '#!/bin/sh\nexit 1\n' }), 'containerd does not run; ');
  const { 'etc/cni/net.d/10-flannel.conflist': _, ...bare } = NODE;
  assert.is(await saysOf(bare), 'no network add-on has written /etc/cni/net.d; ');
  assert.is(await saysOf(CONTROL), 'kube-apiserver does not run; kube-controller-manager has no manifest; ');
});

test('a machine that is no node yet, and one without systemd, say nothing', async () => {
  const nothing = { units: '', ctr: '#!/bin/sh\nexit 1\n' };
  assert.is(await saysOf({}, nothing), '');
  assert.is(await saysOf({ ...NODE, 'etc/kubernetes/curlew/attempt': '' }, nothing), '');
  assert.is(await saysOf({ 'etc/kubernetes/kubelet.conf': '' }, nothing), '');
});

test('members that answer are a quorum, be they healthy or not, and the silent ones are named', () => {
  const member = (name: string, answers: boolean) => ({ name, answers, healthy: false });
  assert.is(lostQuorum([member('a', true), member('b', true), member('c', false)]), undefined);
  assert.is(
    lostQuorum([member('a', true), member('b', false), member('c', false)]),
    'etcd has lost its quorum: 1 of 3 members answers, and b and c do not',
  );
  // A learner has no vote, and an earlier version says only what is healthy.
  assert.is(
    lostQuorum([
      { name: 'a', healthy: true },
      { name: 'b', learner: true },
    ]),
    undefined,
  );
});

test.run();
