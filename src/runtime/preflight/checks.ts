/** The table of checks. */
import type { Json } from '../../formats/yaml/yaml.ts';
import type { AnyCheck, Check } from './check.ts';
import { blockDevices } from './checks/block-devices.ts';
import { certificate } from './checks/certificate.ts';
import { cpu } from './checks/cpu.ts';
import { diskUsage } from './checks/disk-usage.ts';
import { filesystemPerformance } from './checks/filesystem-performance.ts';
import { hostOs } from './checks/host-os.ts';
import { hostServices } from './checks/host-services.ts';
import { http } from './checks/http.ts';
import { ipv4Interfaces } from './checks/ipv4-interfaces.ts';
import { kernelModules } from './checks/kernel-modules.ts';
import { memory } from './checks/memory.ts';
import { tcpConnect, tcpLoadBalancer, tcpPortStatus, udpPortStatus } from './checks/network.ts';
import { run } from './checks/run.ts';
import { sysctl } from './checks/sysctl.ts';
import { systemPackages } from './checks/system-packages.ts';
import { time } from './checks/time.ts';

/** The cast is safe: a check evaluates only facts that it has collected, or whose shape it has checked. */
function erased<Facts extends Json>(check: Check<Facts>): AnyCheck {
  return check as unknown as AnyCheck;
}

const CHECKS: readonly AnyCheck[] = [
  erased(blockDevices),
  erased(certificate),
  erased(cpu),
  erased(diskUsage),
  erased(filesystemPerformance),
  erased(hostOs),
  erased(hostServices),
  erased(http),
  erased(ipv4Interfaces),
  erased(kernelModules),
  erased(memory),
  erased(run),
  erased(sysctl),
  erased(systemPackages),
  erased(tcpConnect),
  erased(tcpLoadBalancer),
  erased(tcpPortStatus),
  erased(time),
  erased(udpPortStatus),
];

/** By the keys of their collectors. */
export const COLLECTORS: ReadonlyMap<string, AnyCheck> = new Map(CHECKS.map((one) => [one.kind, one]));
/** By the keys of their analyzers. */
export const ANALYZERS: ReadonlyMap<string, AnyCheck> = new Map(
  CHECKS.map((one) => [one.analyzerKind ?? one.kind, one]),
);
