//go:build record

package driver

// situations returns the recorded situations, each with the commands that produce it.
func situations() []situation {
	if *recordSwarm {
		return swarmSituations
	}
	if *recordRestart != "" {
		return restartSituations
	}
	return plainSituations
}

// plan has a network with an IPv6 subnet and two IPv4 subnets, the first with two pools and an exclusion.
const plan = `+network.create {"name":"front","subnets":[{"cidr":"10.91.8.0/24","gateway":"10.91.8.254"},{"cidr":"10.91.9.0/24","gateway":"10.91.9.1","pool":true},{"cidr":"fd91:8::/64","gateway":"fd91:8::1","pool":true}]}
	+pool.add {"network":"front","range":"10.91.8.10-10.91.8.12","name":"web"}
	+pool.add {"network":"front","range":"10.91.8.20-10.91.8.29","name":"rest"}
	+exclusion.add {"network":"front","range":"10.91.8.11","note":"printer"}
`

const one = "network create -d bridge --ipam-driver $D --subnet 10.91.7.0/24 --gateway 10.91.7.1 $N\n"

var plainSituations = []situation{
	{name: "handshake", about: "The engine meets the plugin; a network without a subnet.",
		script: "network create -d bridge --ipam-driver $D $N\n network rm $N"},
	{name: "create-full", about: "A subnet, a range, a gateway outside of it, two auxiliary addresses, options.",
		script: `network create -d bridge --ipam-driver $D --subnet 10.91.1.0/24 --ip-range 10.91.1.128/25 --gateway 10.91.1.9 --aux-address a=10.91.1.200 --aux-address b=10.91.1.5 --ipam-opt tag.foo=bar $N
			network rm $N`},
	{name: "unknown-option", about: "An option that Berth does not know.",
		script: "!network create -d bridge --ipam-driver $D --subnet 10.91.1.0/24 --ipam-opt foo=bar $N"},
	{name: "dual-stack", about: "Two families, both subnets given.",
		script: `network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.2.0/24 --subnet fd91:2::/64 $N
			create --name $N-c --network $N $I /pause
			start $N-c
			rm -f $N-c
			network rm $N`},
	{name: "dual-stack-auto", about: "Two families, the subnet of one given.",
		script: `network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.2.0/24 $N
			network rm $N`},
	{name: "container", about: "A container's life: create, start, restart, stop, rename, start, kill, rm -f.", script: one + `create --name $N-c --network $N $I /pause
			start $N-c
			restart -t 1 $N-c
			stop -t 1 $N-c
			rename $N-c $N-d
			start $N-d
			kill $N-d
			wait $N-d
			start $N-d
			rm -f $N-d
			network rm $N`},
	{name: "connect", about: "Connect and disconnect.", script: one + `run -d --name $N-c --network none $I /pause
			!network connect $N $N-c
			rm -f $N-c
			run -d --name $N-c $I /pause
			network connect $N $N-c
			network disconnect $N $N-c
			network connect --ip 10.91.7.77 $N $N-c
			rm -f $N-c
			network rm $N`},
	{name: "restart-policy", about: "A container that fails and is started again by its policy.", script: one + `run -d --name $N-c --network $N --restart on-failure:2 $I /pause fail
			%4s
			rm -f $N-c
			network rm $N`},
	{name: "explicit", about: "An address by --ip, and a second container that wants the same.", script: one + `run -d --name $N-c --network $N --ip 10.91.7.77 $I /pause
			!run -d --name $N-d --network $N --ip 10.91.7.77 $I /pause
			rm -f $N-d
			!run -d --name $N-e --network $N --ip 10.91.7.255 $I /pause
			rm -f $N-e $N-c
			network rm $N`},
	{name: "mac", about: "A MAC by the engine's own interface: stopped, another one comes, started again.", script: one + `curl /v1.41/containers/create?name=$N-c {"Image":"$I","Cmd":["/pause"],"MacAddress":"02:42:0a:5b:07:99","HostConfig":{"NetworkMode":"$N"}}
			start $N-c
			stop -t 1 $N-c
			run -d --name $N-d --network $N $I /pause
			start $N-c
			rm -f $N-c $N-d
			network rm $N`},
	{name: "prune", about: "A network removed by prune.",
		script: "network create --label $N -d bridge --ipam-driver $D --subnet 10.91.7.0/24 $N\nnetwork prune -f " +
			"--filter label=$N"},
	{name: "gateway-refused", about: "A gateway that is refused: the pool goes back at once.",
		script: "!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --gateway 10.91.3.255 $N"},
	{name: "aux-refused", about: "An auxiliary address that is refused.",
		script: "!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --aux-address a=10.91.3.0 $N"},
	{name: "v6-refused", about: "Two families, of which the second one's pool is refused: this engine gives the " +
		"first one back.",
		script: "!network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.3.0/24 --subnet fd91:3::5/64 $N"},
	{name: "gateway-option", about: "A gateway as an option: it is not asked for, but released.",
		script: "network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --ipam-opt gateway=10.91.3.7 $N\n " +
			"network rm $N"},
	{name: "gateway-none", about: "A network without a gateway, of which the engine wants one all the same.",
		script: "network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --ipam-opt gateway=none $N\n " +
			"network rm $N"},
	{name: "host-bits", about: "A subnet and a range with host bits.",
		script: `!network create -d bridge --ipam-driver $D --subnet 10.91.3.9/24 $N
			!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --ip-range 10.91.3.130/25 $N`},
	{name: "two-subnets", about: "Two subnets of one family.",
		script: `!network create -d bridge --ipam-driver $D --subnet 10.91.3.0/24 --subnet 10.91.4.0/24 $N`},
	{name: "v6-gateway-refused", about: "Two families, of which the second one's gateway is refused.",
		script: "!network create -d bridge --ipam-driver $D --ipv6 --subnet 10.91.3.0/24 --subnet fd91:3::/64 " +
			"--gateway fd91:3:: $N"},
	{name: "planned", about: "A planned network: the option alone chooses subnet and gateway.",
		script: plan + `network create -d bridge --ipam-driver $D --ipam-opt network=front $N
			run -d --name $N-c --network $N $I /pause
			rm -f $N-c
			network rm $N
			network create -d bridge --ipam-driver $D --ipam-opt network=front $N
			network rm $N`},
	{name: "planned-pool", about: "A pool by name until it is full: it never goes on to the next one.",
		script: plan + `network create -d bridge --ipam-driver $D --ipam-opt network=front --ipam-opt pool=web $N
			run -d --name $N-c --network $N $I /pause
			run -d --name $N-d --network $N $I /pause
			!run -d --name $N-e --network $N $I /pause
			rm -f $N-c $N-d $N-e
			network rm $N`},
	{name: "planned-subnet",
		about: "One of a planned network's subnets, by --subnet, with an address that is asked for.",
		script: plan + `network create -d bridge --ipam-driver $D --subnet 10.91.9.0/24 --ipam-opt network=front $N
			run -d --name $N-c --network $N --ip 10.91.9.77 $I /pause
			rm -f $N-c
			network rm $N`},
	{name: "planned-dual-stack", about: "A planned network of both families.",
		script: plan + `network create -d bridge --ipam-driver $D --ipv6 --ipam-opt network=front $N
			run -d --name $N-c --network $N $I /pause
			rm -f $N-c
			network rm $N`},
	{name: "planned-refused",
		about: "A planned network that is not there, one without a subnet, a pool and a subnet that are not there.",
		script: plan + `+network.create {"name":"flat"}
			!network create -d bridge --ipam-driver $D --ipam-opt network=back $N
			!network create -d bridge --ipam-driver $D --ipam-opt network=flat $N
			!network create -d bridge --ipam-driver $D --ipam-opt network=front --ipam-opt pool=db $N
			!network create -d bridge --ipam-driver $D --subnet 10.91.10.0/24 --ipam-opt network=front $N
			!network create -d bridge --ipam-driver $D --ipam-opt network=front --ipam-opt size=26 $N`},
	{name: "config-only", about: "A network that is a configuration only: no call at all.",
		script: `network create --config-only --ipam-driver $D --subnet 10.91.3.0/24 $N
			network rm $N`},
}

var restartSituations = []situation{
	{name: "engine-stopped", about: "The engine stops in order and starts, with a container that runs.",
		script: one + "run -d --name $N-c --restart always --network $N $I /pause\n@stop\n@start\nrm -f " +
			"$N-c\nnetwork rm $N"},
	{name: "engine-killed", about: "The engine is killed and started, with a container that runs.",
		script: one + "run -d --name $N-c --restart always --network $N $I /pause\n@kill\n@start\nrm -f " +
			"$N-c\nnetwork rm $N"},
	{name: "live-restore", about: "The engine is killed and started with live-restore: the containers run on.",
		script: one + "run -d --name $N-c --network $N $I /pause\n@live\n@kill\n@startlive\nrm -f $N-c\nnetwork rm $N"},
}

var swarmSituations = []situation{
	{name: "swarm-network", about: "An overlay network of a swarm: the manager asks in the global space, the node in " +
		"the local one.",
		script: `network create -d overlay --attachable --ipam-driver $D --subnet 10.91.5.0/24 $N
			run -d --name $N-c --network $N $I /pause
			rm -f $N-c
			service create -d --name $N-s --network $N --replicas 2 $I /pause
			@settle $N-s 2
			service rm $N-s
			@gone $N
			network rm $N
			@settle`},
	{name: "swarm-two-subnets",
		about: "A swarm network of two subnets: the second request has options of the first one's gateway.",
		script: "network create -d overlay --ipam-driver $D --subnet 10.91.5.0/24 --subnet 10.91.6.0/24 $N\nnetwork " +
			"rm $N\n@settle"},
	{name: "swarm-same-ip", about: "Two containers that want one address of an attachable network.",
		script: "network create -d overlay --attachable --ipam-driver $D --subnet 10.91.5.0/24 $N\n" + `run -d --name $N-c --network $N --ip 10.91.5.77 $I /pause
			!run -d --name $N-d --network $N --ip 10.91.5.77 $I /pause
			rm -f $N-c $N-d`},
	{name: "swarm-restart", about: "A manager that is killed asks for all its pools and addresses again.",
		script: `network create -d overlay --attachable --ipam-driver $D --subnet 10.91.5.0/24 $N
			service create -d --name $N-s --network $N --replicas 2 $I /pause
			@settle $N-s 2
			@kill
			@start
			@settle $N-s 2
			service rm $N-s
			@gone $N
			network rm $N
			@settle`},
}
