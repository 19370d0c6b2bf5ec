/** Install, join and upgrade of a node by curlew, next to kubeadm's documented steps in a plain script on the same nodes: `scripts/grid run bench`. */
import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../components/support/programs.ts';
import { figure, type Section } from './report.ts';

const STEPS = [
  ['install', 'install of the first node', 1.2],
  ['join', 'join of a worker', 1.2],
  ['upgrade-first', 'one minor up, the first node', 1.2],
  ['upgrade-next', 'one minor up, the worker', 1.2],
  ['ssh', 'both nodes from a file over SSH, manually on each node', 1.3],
] as const;

/** Takes about 25 minutes, and wants a machine on which nothing else runs. */
export async function benchGrid(say: (text: string) => void): Promise<Section> {
  await execa(join(ROOT, 'scripts/grid'), ['run', 'bench'], { stdout: 'inherit', stderr: 'inherit' });
  const text = await readFile(join(ROOT, '.curlew/grid/logs/times'), 'utf8');
  const times = new Map<string, number>();
  for (const line of text.trim().split('\n')) {
    const [step, by, ms] = line.split(' ');
    times.set(`${step} ${by}`, Number(ms) / 1000);
  }
  const rows = STEPS.map(([step, title, limit]) => {
    const [own, plain] = [times.get(`${step} curlew`) ?? Number.NaN, times.get(`${step} plain`) ?? Number.NaN];
    say(`grid, ${title}: ${figure(own)} s, plain ${figure(plain)} s`);
    return { title, own, plain, limit };
  });
  return {
    title: 'Nodes of Kubernetes',
    about:
      'One run on two nodes in containers, of the same programs and images. The plain script imports archives of images, one after ' +
      "the other, and has kubeadm's documented steps, with drain and uncordon; curlew also checks the host, saves etcd, and verifies " +
      "each file. Manually, the bundle is unpacked on each node through ssh, and curlew's own commands are started there.",
    table: [
      ['step', 'curlew, s', 'plain script, s'],
      ...rows.map(({ title, own, plain }) => [title, figure(own), figure(plain)]),
    ],
    targets: rows.map(({ title, own, plain, limit }) => ({
      name: title,
      wanted: `≤ ${limit}`,
      measured: figure(own / plain),
      met: own / plain <= limit,
    })),
  };
}
