/** Why a host cannot get the bundle: another architecture, or too little room for it or for its images. Pure. */
import { imageSteps, planDisk, shortages } from '../../runtime/plan/disk.ts';
import type { Held } from '../cluster.ts';
import type { BundleFacts, HostLook } from './look.ts';

/** The file of a bundle, what is in it, and its images in containerd; etcd needs some of the same disk. */
const [TIMES, SPARE_MIB, MIB] = [3, 1024, 1 << 20];

/** Empty for a host that can, and for one that has it. */
export function refusedBundle({ host, facts }: HostLook, bundle: BundleFacts): readonly Held[] {
  if (facts === undefined || facts.bundle === bundle.digest) return [];
  const refuse = (reason: string): readonly Held[] => [{ host: host.name, reason }];
  if (facts.arch !== bundle.arch)
    return refuse(
      `it is ${facts.arch}, and the bundle is for ${bundle.arch}: curlew machine add or upgrade can use another for it`,
    );
  const need = SPARE_MIB + Math.ceil((TIMES * bundle.size) / MIB);
  if (facts.diskMiB >= need) return [];
  return refuse(`it has ${facts.diskMiB} MiB free in /var/lib, and the bundle needs ${need}: make room there`);
}

/** Why a host that is to become a node has no room for the images, by the rule of its own run, which loads all of them there. */
export function refusedImages({ host, facts }: HostLook, { images = [] }: BundleFacts): readonly Held[] {
  if (facts?.imageDisk === undefined || facts.isPart || facts.isUnfinished) return [];
  const { path, ...space } = facts.imageDisk;
  const steps = images.flatMap(({ bytes, ...one }) =>
    imageSteps(one, { root: path, missing: new Map([[one.addon, bytes]]) }),
  );
  const mount = { device: path, mountPoint: path, paths: [path], inodes: undefined, ...space };
  const reasons = shortages(planDisk(steps, [mount]));
  return reasons.map((text) => ({ host: host.name, reason: `the images of the bundle find no room on it: ${text}` }));
}
