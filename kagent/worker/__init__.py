"""What the Faust worker is made of, each piece without Faust in it: ``kagent.app`` only wires them."""
